"""Learning offline from dialogues that a policy plays meanwhile."""

import numpy as np
import pytest
import torch

import agents
import dialgym
from agents import BC, CQL, DecisionTransformer, DialogueStream, UtteranceILQL, train
from agents.buffers.stored import Sampler
from dialgym.datasets import concatenate
from tests.support.commands import fail, succeed
from tests.support.word_games import ID, assert_two_parts_are_one_run, learner

ACTS = "dialgym/SFRestaurants-Env1-act-v0"
TINY = {
    "batch_size": 8,
    "learning_rate": 0.01,
    "log_interval": 4,
    "policy_kwargs": {"n_layer": 1, "n_embd": 16},
}


def stream(policy="random-mixture", episodes=20, env_id=ID, **more):
    return DialogueStream(env_id, policy, episodes, seed=3, **more)


def same_weights(one, other):
    pairs = zip(one.policy.parameters(), other.policy.parameters(), strict=True)
    return all(torch.equal(a, b) for a, b in pairs)


def test_learning_from_a_stream_is_learning_from_all_its_blocks_collected_before():
    made = stream()
    blocks = [made.block(number) for number in range(3)]
    assert len({tuple(block["seed"]) for block in blocks}) == 3
    model = learner(BC, made, batch_size=7).learn(6)  # two steps a block
    before = learner(BC, concatenate(blocks), batch_size=7)
    sampler = Sampler(20, 7, 0, endless=True)
    for step in range(6):
        rows = sampler.rows(step)
        assert set(rows // 20) == {step // 2}
        before.set_logger(model.logger)
        before.gradient_step(rows)
    assert same_weights(model, before)
    assert model.data.number == 2


def test_a_run_on_a_stream_in_two_parts_is_the_same_as_one(tmp_path):
    made = stream()
    assert_two_parts_are_one_run(lambda: learner(BC, stream(), batch_size=7), made, tmp_path)


def test_a_block_of_a_generator_has_as_many_dialogues_as_episodes():
    made = stream("adversarial", 5)
    block = made.block(1)
    assert len(block) == 5 < len(dialgym.collect(ID, "adversarial", 5))
    assert block.table.equals(made.block(1).table)
    assert made.environment() == (ID, {})
    assert repr(made) == f"DialogueStream({ID!r}, 'adversarial', episodes=5, seed=3)"


@pytest.mark.parametrize("algorithm", [DecisionTransformer, UtteranceILQL])
def test_other_learners_take_a_stream(algorithm):
    model = learner(algorithm, stream(), batch_size=10).learn(3)
    assert model.data.number == 1
    if algorithm is DecisionTransformer:
        assert model.policy.target_return == stream().block(0).returns.max()


def test_acts_are_streamed_too():
    env = dialgym.sb3_vec_env(ACTS, 1)
    made = stream("handcrafted", 6, ACTS)
    model = CQL("MlpPolicy", env, made, batch_size=3, seed=0).learn(3)
    assert model.data.number == 1


def test_a_stream_from_the_command_line_goes_on_where_it_was(tmp_path):
    settings = {"episodes": 16, "policy_kwargs": {"smart": 0.5}}
    kwargs = {"data": "play:random-mixture", "hyperparameters": {**TINY, "stream": settings}}
    kwargs |= {"env_kwargs": {"tokenizer": "word"}, "seed": 5, "progress_bar": False}
    whole = train(ID, "bc", log_dir=tmp_path / "a", total_timesteps=8, **kwargs)
    more = {"env_kwargs": {"tokenizer": "word"}, "policy_kwargs": {"smart": 0.5}}
    known = DialogueStream(ID, "random-mixture", 16, 5, **more)
    expected = known.block(3).tokens()
    np.testing.assert_array_equal(whole.data.at_hand.tokens, expected.tokens)
    train(ID, "bc", log_dir=tmp_path / "b", total_timesteps=4, **kwargs)
    resumed = train(ID, "bc", log_dir=tmp_path / "b", total_timesteps=8, resume=True, **kwargs)
    assert same_weights(whole, resumed)
    file = str(tmp_path / "a" / "config.yml")
    shown = succeed("train", "--config", file, "--out", str(tmp_path / "c"))
    assert "16 new dialogues an epoch, play:random-mixture" in shown
    assert same_weights(whole, agents.load(tmp_path / "c" / "model.zip"))


def test_what_cannot_be_streamed_is_one_clear_error(tmp_path):
    for data, setting, message in (
        ("play:randm", "top=0.5", "top: for stored dialogues, of which some are chosen"),
        ("play:random", "held_out=0.5", "held_out: for stored dialogues"),
        ("play:randm", "stream={episodes: 4}", "unknown policy for the system 'randm'"),
        ("play:random", "stream={episode: 4}", "unknown setting 'episode' in stream. Did you me"),
        (
            "play:random",
            "stream={episodes: 0}",
            "episodes of collect must be a whole number from",
        ),
        ("play:os:getcwd", "stream={episodes: 4}", "os:getcwd"),
    ):
        command = ("train", "bc", ID, "-d", data, "--out", str(tmp_path / "run"))
        assert message in fail(*command, "-p", setting)
    two = fail("train", "bc", ID, "-d", "play:random", "-d", "play:optimal")
    assert "expected one stream alone, for what learns offline" in two
    with pytest.raises(ValueError, match="expected dialogues of dialgym/Wordle-20-v0, got a str"):
        train(ID, "bc", data=stream(env_id="Wordle-200-v0"), log_dir=tmp_path / "run")
