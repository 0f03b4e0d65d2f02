"""Two learners in one dialogue: what each is given, and what they come to."""

import copy

import numpy as np
import pytest
import torch

import agents
import dialgym
from agents import GRPO, SelfPlay
from tests.support.signals import EFFORT

ID = "tests.support.signals:Signals"
SMALL = {"n_layer": 1, "n_head": 2, "n_embd": 16}


def made(id=ID, rows=16, env_kwargs=(), **settings):
    """A pair of learners who have not met."""
    pair = SelfPlay(id, rows, seed=0, **dict(env_kwargs))
    common = {"n_steps": 20, "group_size": 4, "scale_rewards": "none", "policy_kwargs": SMALL}
    common |= {"seed": 0, "batch_size": 64, "device": "cpu", **settings}
    return pair, {party: GRPO("GPTPolicy", side, **common) for party, side in pair.sides.items()}


@pytest.fixture(scope="module")
def played():
    """After one rollout, without an update."""
    pair, learners = made()
    pair.learn(learners, 1, learning=())
    return pair, learners


def test_rewards_between_two_tokens_are_the_firsts(played):
    """Row by row: the user's word, what it cost, what the system's answer to it earned."""
    pair, learners = played
    for party, learner in learners.items():
        paid = learner.rollout_buffer.steps("rewards")
        assert paid.shape == (4, 16)  # a letter and an end, twice
        for row, game in enumerate(pair.dialogues.games):
            letter, lines = game.dialogue_state.letter, game.dialogue_state.lines
            expected = []
            for told, heard in zip(lines[::2], lines[1::2]):
                cost = EFFORT * (told.text == "a") if party == "user" else 0.0
                right = 0.5 * (told.text == letter) + 0.5 * (heard.text == told.text)
                expected += [0.0, right - cost]
            assert paid[:, row].tolist() == expected
            assert pair.dialogues.returns[party][row] == pytest.approx(sum(expected))


def test_each_learns_from_its_own_tokens_within_what_it_sees(played):
    pair, learners = played
    for party, learner in learners.items():
        sequences = learner.rollout.sequences
        assert sequences.sizes.tolist() == [4] * 16
        assert learner.num_timesteps == 64
        rows = sequences.steps[sequences.first[:-1]] % 16
        for tokens, row in zip(sequences.tokens.numpy(), rows):
            seen = pair.dialogues.games[row].observe(party)
            length = int((tokens != 0).sum())
            assert tokens[:length].tolist() == seen[:length].tolist()
        everything = learner.batches(np.arange(16))
        for batch in everything:
            _, log_prob, _ = learner.policy.evaluate_sequences(
                batch.tokens, batch.at, batch.actions, batch.allowed
            )
            torch.testing.assert_close(log_prob.detach(), batch.log_probs, atol=1e-5, rtol=1e-5)


def test_a_group_begins_alike_and_its_mean_is_the_baseline(played):
    pair, learners = played
    letters = np.array([game.dialogue_state.letter for game in pair.dialogues.games]).reshape(4, 4)
    assert (letters == letters[:, :1]).all()
    assert len(set(letters[:, 0])) > 1
    learner = learners["user"]
    returns = pair.dialogues.returns["user"].reshape(4, 4)
    expected = (returns - returns.mean(1, keepdims=True)).ravel()
    rows = learner.rollout.sequences.steps % 16
    np.testing.assert_allclose(learner.rollout.advantages.numpy(), expected[rows], atol=1e-6)


def test_the_log_has_every_dialogue_of_both(played):
    pair, learners = played
    for party, learner in learners.items():
        logged = [episode["r"] for episode in learner.ep_info_buffer]
        assert logged == pytest.approx(pair.dialogues.returns[party].tolist())
        assert [episode["l"] for episode in learner.ep_info_buffer] == [4] * 16
        won = [game.dialogue_state.lines[-1].text == game.dialogue_state.letter
               for game in pair.dialogues.games]  # fmt: skip
        assert list(learner.ep_success_buffer) == won


@pytest.mark.slow
def test_both_learn_at_once():
    """By chance the return is 2/3; with one who knows and one who does not, 4/3."""
    pair, learners = made(
        rows=64, credit="turn", learning_rate=5e-3, n_epochs=2, batch_size=256
    )  # fmt: skip
    pair.learn(learners, 14_000)
    assert sum(learner.num_timesteps for learner in learners.values()) >= 14_000
    pair.learn(learners, 1, learning=())
    assert pair.dialogues.returns["system"].mean() > 1.4


def test_who_does_not_learn_stays_what_it_is():
    pair, learners = made()
    before = {p: copy.deepcopy(one.policy.state_dict()) for p, one in learners.items()}
    pair.learn(learners, 200, learning=["user"])
    moved = {
        party: any(not torch.equal(before[party][k], v) for k, v in one.policy.state_dict().items())
        for party, one in learners.items()
    }
    assert moved == {"system": False, "user": True}


def test_it_comes_out_again():
    weights = []
    for _ in range(2):
        pair, learners = made(kl={"coef": 0.1})
        pair.learn(learners, 300)
        weights.append([w for one in learners.values() for w in one.policy.state_dict().values()])
    assert all(torch.equal(a, b) for a, b in zip(*weights))


def test_what_goes_on_beyond_the_steps_counts_as_it_stands():
    pair, learners = made(n_steps=2)
    pair.learn(learners, 1)
    for party, learner in learners.items():
        assert learner.rollout.sequences.sizes.tolist() == [2] * 16
        assert not learner.ep_success_buffer, party


def test_a_callback_stops_both():
    pair, learners = made()
    calls = []
    pair.learn(learners, 10_000, callbacks={"user": lambda *_: len(calls.append(1) or calls) < 3})
    assert len(calls) == 3
    assert not hasattr(learners["system"], "rollout")


def test_the_learned_speak_in_any_env(tmp_path):
    pair, learners = made()
    pair.learn(learners, 1)
    for party, learner in learners.items():
        learner.save(tmp_path / party)
    own = {"simulator": {"name": "agents:ChatAgent", "talker": str(tmp_path / "user.zip")}}
    model = agents.load(tmp_path / "system.zip", device="cpu")
    assert 0 <= dialgym.evaluate(model, ID, 4, env_kwargs=own).mean_return <= 2
    user = agents.load(tmp_path / "user.zip", device="cpu")
    held_out = dialgym.evaluate(user, ID, 4, env_kwargs={"learner": "user"})
    assert held_out.mean_return <= 2


def test_features_and_masks_beside_the_tokens():
    settings = {"n_steps": 16, "group_size": 2, "env_kwargs": {"features": True}}
    pair, learners = made("tests.support.toy_pictures:NameIt", 2, **settings)
    pair.learn(learners, 1)
    seen = learners["system"].rollout.sequences.features
    shown = [game.dialogue_state.pixels for game in pair.dialogues.games]
    np.testing.assert_array_equal(seen, shown)
    assert learners["user"].rollout.sequences.features is None
    pair, learners = made("dialgym/Wordle-Hard-v0", 2, n_steps=12, group_size=2)
    assert learners["system"].env_masks
    pair.learn(learners, 1)
    assert len(learners["system"].rollout.sequences.columns["masks"]) == 24


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda p, m: m.pop("user"),
            r"a learner for each of \['system', 'user'\], got \['system'\]",
        ),
        (lambda p, m: m.update(user=m["system"]), r"a GRPO made with sides\['user'\]"),
        (
            lambda p, m: setattr(m["user"], "resample", 1),
            "resample, truth_gain, credits but 'episode' and 'turn', and",
        ),
        (lambda p, m: setattr(m["system"], "truth_gain", 1.0), "resample, truth_gain, .*gain=1.0"),
        (
            lambda p, m: setattr(m["user"], "group_size", 2),
            "expected one group_size, got {'system': 4",
        ),
    ],
)
def test_what_cannot_play_is_refused(change, message):
    pair, learners = made()
    change(pair, learners)
    with pytest.raises(ValueError, match=f"SelfPlay: .*{message}"):
        pair.learn(learners, 1)


def test_only_token_views_can_be_played():
    with pytest.raises(
        ValueError, match=r"expected an id of a token view.*or for acts agents.MADPL"
    ):
        SelfPlay("dialgym/TwentyQuestions-8-act-v0", 4)
    with pytest.raises(ValueError, match="tunrs"):
        SelfPlay("dialgym/TwentyQuestions-8-v0", 4, tunrs=3)
