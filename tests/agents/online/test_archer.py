"""ArCHer: what it remembers, its losses against slow versions, and that it learns to echo."""

import numpy as np
import pytest
import torch
from gymnasium.wrappers import TimeLimit
from stable_baselines3.common.env_util import make_vec_env

import agents
import dialgym
from agents import ArCHer
from agents.buffers.replayed import DialogueReplay
from agents.buffers.stored import UtteranceBatch
from agents.decoding.generation import Utterances
from agents.online.archer import critic_losses
from agents.policies.utterance_critic import CriticValues
from dialgym.language.tokenizers import END
from tests.support.toy_tokens import SYSTEM, Echo

SMALL = {"n_layer": 1, "n_head": 2, "n_embd": 16}


def made(turns=2, limit=None, policy=None, **settings):
    """A learner of a toy task whose utterances have two letters; tokens in a window of 14 or so."""
    steps = limit or 99
    env = make_vec_env(lambda: TimeLimit(Echo(turns, said=2), steps), 6, seed=0)
    small = {"critic_steps": 2, "replay_batch": 4, "warmup": 0, "n_epochs": 1}
    kwargs = {**SMALL, **(policy or {})}
    arguments = {"n_steps": 20, "batch_size": 999, "policy_kwargs": kwargs, "seed": 0}
    model = ArCHer("GPTPolicy", env, **{**arguments, **small, **settings})
    torch.manual_seed(1)
    parts = [model.policy.q_heads, model.policy.v_heads, model.policy.value_head]
    for heads in (*parts, model.policy.target_q_heads, model.policy.target_v_heads):
        for weight in heads.parameters():
            torch.nn.init.normal_(weight, std=0.5)
    if model.policy.target_backbone is not None:
        model.policy.target_backbone.reset_parameters()
    return model


def test_a_file_keeps_how_it_speaks_as_it_was_set_last(tmp_path):
    model = made()
    model.policy.decoding.temperature = 0.5
    model.save(tmp_path / "model.zip")
    assert agents.load(tmp_path / "model.zip").policy.decoding == model.policy.decoding


def played(model):
    _, callback = model._setup_learn(10_000)
    model.collect_rollouts(model.env, callback, model.rollout_buffer, model.n_steps)
    model.policy.set_training_mode(True)
    return model


@pytest.mark.parametrize("limit", [None, 4], ids=["ended", "cut-off"])
def test_it_remembers_what_was_said_and_earned(limit):
    model = played(made(limit=limit))
    buffer, kept = model.rollout_buffer, model.replay.columns
    assert len(model.replay) == 6
    rewards, actions = buffer.steps("rewards"), buffer.steps("actions")
    steps = limit or 6
    for row, length in enumerate(kept["lengths"]):
        own = kept["is_action"][row]
        tokens = kept["tokens"][row, :length]
        assert tokens[own[:length]].tolist() == actions[:steps, row].tolist()
        np.testing.assert_array_equal(kept["reward"][row][own], rewards[:steps, row])
        assert not kept["reward"][row][~own].any()
        assert (kept["tokens"][row, length:] == 0).all()
        assert tokens[-1] == (END if limit is None else actions[3, row])
        assert kept["truncated"][row] == (limit is not None)
    one_turn = played(made(limit=3)).replay.columns  # cut off after the other party's word
    heard = one_turn["tokens"][np.arange(6), one_turn["lengths"] - 1]
    assert (heard == SYSTEM).all()
    assert not one_turn["is_action"][np.arange(6), one_turn["lengths"] - 1].any()


def test_only_ended_dialogues_are_remembered_and_the_oldest_forgotten():
    model = made(n_steps=4)
    with pytest.raises(ValueError, match=r"expected dialogues that end within n_steps=4 tokens"):
        played(model)
    model = played(made(replay_size=4))
    drawn = model.replay.draw(8, np.random.default_rng(0))
    assert len(model.replay) == 4
    assert drawn.tokens.shape == (8, model.replay.columns["lengths"].max())
    replay = DialogueReplay(2)
    for number in (1, 2, 3):
        replay.add(drawn._replace(lengths=np.full(8, number))._replace(rows=np.arange(8)))
    assert (replay.columns["lengths"] == 3).all()


def read(trunk, tokens):
    return trunk(torch.tensor([tokens], dtype=torch.int64))[0, -1]


def whole(model, sequences):
    [(_, batch)] = model._parts(sequences, 10**9)
    return batch


def said_by(batch, place):
    """The first `place` + 1 tokens of the dialogue of a flat place."""
    row, column = divmod(place, batch.observations.shape[1])
    return batch.observations[row, : column + 1].tolist()


@pytest.mark.parametrize("policy", [{}, {"share_features_extractor": True, "mask": False}])
def test_the_critics_losses_are_those_of_a_slow_version(policy, monkeypatch):
    model = played(made(turns=3, limit=7, policy=policy, env_masks=False))
    sequences, net = model._drawn(), model.policy
    said = []
    monkeypatch.setattr(model, "_say", lambda *a: said.append(ArCHer._say(model, *a)) or said[-1])
    q_loss = v_loss = 0.0
    batch = whole(model, sequences)
    loss, found = model.critic_loss(batch)
    begun = torch.nonzero(batch.begins & batch.is_action)[:, 0].tolist()
    ends = torch.nonzero(batch.ends)[:, 0].tolist()
    assert len(said) == 1
    assert len(begun) == len(ends) > 4
    for i, (begin, end) in enumerate(zip(begun, ends, strict=True)):
        before = said_by(batch, batch.at[begin].item())
        after = said_by(batch, batch.at[end].item())
        new = said[0].tokens[i, 0, : said[0].lengths[i, 0]].tolist()
        for k in range(2):
            target = batch.rewards[end].item()
            if batch.not_done[end]:
                state = read(net.target_trunk, said_by(batch, batch.at[end + 1].item()))
                target += model.gamma * net.target_v_heads[k](state).item()
            q_loss += (net.q_heads[k](read(net.critic_trunk, after)).item() - target) ** 2
            worth = net.target_q_heads[k](read(net.target_trunk, [*before, *new])).item()
            v_loss += (net.v_heads[k](read(net.critic_trunk, before)).item() - worth) ** 2
    assert found["q_loss"].sum().item() == pytest.approx(q_loss, rel=1e-4)
    assert found["v_loss"].sum().item() == pytest.approx(v_loss, rel=1e-4)
    assert loss.sum().item() == pytest.approx(q_loss + v_loss, rel=1e-4)
    model.updater.backward(model.critic_loss, [batch], len(ends))
    learned = {n.split(".")[0] for n, p in net.named_parameters() if p.grad is not None}
    trunk = "backbone" if policy else "value_backbone"
    assert learned == {trunk, "q_heads", "v_heads"}


def test_the_critics_losses_are_those_of_numpy_in_double_precision():
    q, v, targets, slow = np.random.default_rng(0).normal(size=(4, 2, 7))
    values = CriticValues(*(torch.from_numpy(x) for x in (q, v, targets)))
    found = critic_losses(values, torch.from_numpy(slow))
    np.testing.assert_allclose(found["q_loss"], ((targets - q) ** 2).sum(0), rtol=1e-6)
    np.testing.assert_allclose(found["v_loss"], ((slow - v) ** 2).sum(0), rtol=1e-6)


@pytest.mark.parametrize("baseline", [False, True])
def test_the_actor_learns_from_what_it_would_say_now(baseline):
    model = played(made(turns=3, token_baseline=baseline, kl={"coef": 0.2}, ent_coef=0.01))
    net, sequences = model.policy, model._drawn()
    with torch.no_grad():  # away from where the divergence is flat
        net.backbone.wte.weight += 0.3 * torch.randn_like(net.backbone.wte.weight)
    model.rollout = rollout = model._imagined(sequences)
    drawn = {tuple(row[row > 0].tolist()) for row in model.replay.columns["tokens"]}
    total = 0.0
    for i, length in enumerate(rollout.sequences.lengths):
        first, last = rollout.sequences.first[i : i + 2]
        new = rollout.actions[first:last].tolist()
        prompt = rollout.sequences.tokens[i, : length + 1].tolist()[: -len(new)]
        assert prompt[-1] == SYSTEM
        assert any(dialogue[: len(prompt)] == tuple(prompt) for dialogue in drawn)
        worth = [q(read(net.value_backbone, [*prompt, *new])).item() for q in net.q_heads]
        value = [v(read(net.value_backbone, prompt)).item() for v in net.v_heads]
        advantage = min(worth) - min(value)
        for k, token in enumerate(new):
            hidden = read(net.backbone, [*prompt, *new[:k]])
            allowed = net.observation_space.automaton
            open_ = torch.from_numpy(allowed.allowed[allowed.walk(new[:k])])
            log_probs = net.policy_head(hidden).masked_fill(~open_, -1e8).log_softmax(0)
            gain = advantage
            if baseline:
                guess = net.value_head(hidden.detach())[0]  # it does not move the actor
                gain = advantage - guess.item()
                total = total + (advantage - guess) ** 2
            ahead = rollout.reference_log_probs[first + k] - log_probs[token]
            entropy = -(log_probs.exp() * log_probs)[open_].sum()
            total = total - gain * log_probs[token] - 0.01 * entropy
            total = total + 0.2 * (ahead.exp() - 1 - ahead)
            assert rollout.advantages[first + k].item() == pytest.approx(gain, abs=1e-4)
    (total / len(rollout.sequences)).backward()
    wanted = {n: p.grad.clone() for n, p in net.named_parameters() if p.grad is not None}
    everything = np.arange(len(rollout.sequences.sizes))
    model.updater.backward(model.loss, model.batches(everything), len(rollout.sequences))
    for name, weight in net.named_parameters():
        if name in wanted:
            torch.testing.assert_close(weight.grad, wanted[name], atol=2e-5, rtol=1e-3)
    assert ("value_head" in {name.split(".")[0] for name in wanted}) == baseline


def test_the_rollouts_advantages_are_those_of_its_utterances():
    model = played(made(turns=2))
    rollout = model.rollout
    for i in range(6):
        tokens, (a, b) = rollout.sequences.tokens[i].tolist(), rollout.sequences.first[i : i + 2]
        for k in range(a, b, 3):  # two letters and the end
            place = int(rollout.sequences.places[k])
            spoken = rollout.actions[k : k + 3].tolist()
            after = read(model.policy.value_backbone, [*tokens[: place + 1], *spoken])
            before = read(model.policy.value_backbone, tokens[: place + 1])
            worth = min(q(after).item() for q in model.policy.q_heads)
            value = min(v(before).item() for v in model.policy.v_heads)
            expected = [worth - value] * 3
            assert rollout.advantages[k : k + 3].tolist() == pytest.approx(expected, abs=1e-5)


def test_utterances_at_the_windows_end_are_valued_as_far_as_they_fit():
    model = played(made())
    batch = whole(model, model._drawn())
    assert isinstance(batch, UtteranceBatch)
    begun, window = batch.begins & batch.is_action, model.policy.backbone.window
    count = int(begun.sum())
    tokens = torch.full((count, 1, window), 5)
    said = Utterances(tokens, torch.full((count, 1), window), torch.zeros(count, 1, window))
    assert model.policy.q_of(batch, begun, said).isfinite().all()


def test_a_dialogue_that_a_limit_cut_off_in_a_full_window_is_not_gone_on_with():
    env = dialgym.sb3_vec_env("dialgym/TwentyQuestions-8-v0", 8, seed=0, window=20)
    more = {"n_steps": 60, "critic_steps": 1, "warmup": 0, "policy_kwargs": SMALL, "seed": 0}
    model = ArCHer("GPTPolicy", env, **more).learn(100)
    assert (model.rollout.sequences.lengths <= 20).all()


def test_what_it_cannot_do_is_one_clear_error():
    env = dialgym.sb3_vec_env("dialgym/Wordle-20-v0", 2)
    with pytest.raises(ValueError, match=r"ArCHer: .* masks follow from its constraint"):
        ArCHer("GPTPolicy", env, env_masks=True, policy_kwargs=SMALL)
    with pytest.raises(ValueError, match=r"expected agents.ArCHerPolicy"):
        ArCHer(agents.GPTPolicy, env)
    for name, value in {"critic_steps": 0, "replay_size": 0, "warmup": -1, "tau": 2.0}.items():
        with pytest.raises(ValueError, match=f"expected {name} to be a"):
            ArCHer("GPTPolicy", env, **{name: value})
    with pytest.raises(TypeError, match="group_size"):
        ArCHer("GPTPolicy", env, group_size=2)


@pytest.mark.parametrize(
    "lora", [None, pytest.param({"r": 2}, marks=pytest.mark.slow)], ids=["whole", "adapters"]
)
def test_a_token_baseline_and_a_rate_of_the_critic(lora, tmp_path):
    policy = {"lora": lora, "share_features_extractor": {"n_embd": 24, "n_head": 2}}
    settings = {"token_baseline": True, "value_learning_rate": 0.01, "warmup": 1}
    model = made(policy=policy, kl={"coef": 0.1}, **settings)
    before = {n: p.clone() for n, p in model.policy.named_parameters()}

    def moved():
        return {n for n, p in model.policy.named_parameters() if not torch.equal(p, before[n])}

    model.learn(1)
    assert {n.split(".")[0] for n in moved()} == {
        *("value_backbone", "q_heads", "v_heads"),
        *("target_backbone", "target_q_heads", "target_v_heads"),
    }
    model.learn(60)
    assert all("lora_" in n for n in moved() if lora and n.startswith("backbone"))
    assert any(n.startswith("backbone") for n in moved())
    agents.save(model, tmp_path / "model.zip")
    again = agents.load(tmp_path / "model.zip", env=model.env)
    assert (again.gamma, again.tau, again.token_baseline) == (0.95, 0.1, True)
    again.learn(40)


@pytest.mark.slow
def test_it_learns_to_echo():
    env = make_vec_env(lambda: Echo(turns=2, said=1), 32, seed=0)
    kwargs = {"n_layer": 1, "n_head": 2, "n_embd": 32}
    settings = {"critic_steps": 10, "warmup": 5, "learning_rate": 3e-3, "policy_kwargs": kwargs}
    model = ArCHer("GPTPolicy", env, n_steps=20, seed=0, **settings)
    model.learn(1)
    assert np.mean([episode["r"] for episode in model.ep_info_buffer]) < 0.8
    model.learn(8_000)
    assert np.mean([episode["r"] for episode in model.ep_info_buffer]) > 1.8  # of 2
