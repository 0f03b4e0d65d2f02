"""The KL divergence from a reference: its coefficient, and the models that may be one."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from stable_baselines3.common.env_util import make_vec_env

import agents
import dialgym
from agents import BC, GRPO, SequencePPO, start_from, train
from agents.online.reference import KLControl
from tests.agents.online.test_sequence_ppo import SMALL, STEPS, collected
from tests.support.resuming import assert_same_model
from tests.support.toy_tokens import Echo

ID = "dialgym/Wordle-20-v0"


@given(kl=st.floats(-1, 10), tokens=st.integers(1, 2000))
def test_the_coefficient_follows_by_tokens(kl, tokens):
    control = KLControl(0.2, target=0.5, horizon=10_000, clip=0.3)
    error = min(max((kl - 0.5) / 0.5, -0.3), 0.3)
    assert control.steered(0.4, kl, tokens) == pytest.approx(0.4 * (1 + error * tokens / 10_000))


def test_the_coefficient_follows_by_rollouts_without_a_horizon():
    control, coef = KLControl(0.2, target=0.05), 0.2  # the constants of OpenRL and RL4LMs
    for kl, tokens in ((0.2, 10), (0.051, 1000), (0.0, 3)):
        expected = coef * (1 + 0.1 * float(np.clip((kl - 0.05) / 0.05, -0.2, 0.2)))
        coef = control.steered(coef, kl, tokens)
        assert coef == pytest.approx(expected)


def test_many_small_rollouts_move_the_coefficient_as_one_large_does_nearly():
    control, coef = KLControl(1.0, 0.1, horizon=100_000), 1.0
    for _ in range(10):
        coef = control.steered(coef, 1.0, 100)
    assert coef == pytest.approx(control.steered(1.0, 1.0, 1000), rel=1e-5)


def test_the_coefficient_stays_positive():
    assert KLControl(1.0, target=0.1, horizon=10).steered(1.0, 0.0, 10_000) == 0.5
    assert KLControl(1.0).steered(1.0, math.inf, 100) == 1.0


@pytest.mark.parametrize("algorithm", [SequencePPO, GRPO])
def test_the_learners_hand_their_settings_over_and_count_tokens(algorithm):
    more = {"group_size": 2} if algorithm is GRPO else {}
    env = make_vec_env(Echo, 4, seed=0)
    settings = {"kl": {"coef": 0.5, "target": 0.01, "horizon": 1000, "clip": 0.4}}
    settings["policy_kwargs"] = SMALL
    model = algorithm("GPTPolicy", env, n_steps=10, seed=0, **settings, **more)
    assert model.kl == KLControl(0.5, 0.01, 1000, 0.4)
    model.learn(1)  # the policy is the reference yet: the error is -1
    count = len(model.rollout.sequences)
    assert model.kl_coef == pytest.approx(0.5 * (1 - 0.4 * count / 1000))


@pytest.fixture(scope="module")
def cloned(tmp_path_factory):
    """A saved agent of another size."""
    path = tmp_path_factory.mktemp("cloned") / "model.zip"
    games = dialgym.collect(ID, "random", 8, seed=0)
    kwargs = {"n_layer": 1, "n_embd": 24, "n_head": 2}
    BC("GPTPolicy", dialgym.sb3_vec_env(ID, 1), games, policy_kwargs=kwargs, seed=5).save(path)
    return path


def reference_log_probs(model, other):
    """Of the last rollout: as the learner's reference has them, and as another policy would."""
    batch = next(model.batches(np.arange(len(model.rollout.sequences.sizes))))
    read = batch.tokens, batch.at, batch.actions, batch.allowed
    return batch.reference_log_probs, other.sequence_log_prob(*read)


def test_another_model_may_be_the_reference(cloned, tmp_path):
    env = dialgym.sb3_vec_env(ID, 4, seed=0)
    settings = {"n_steps": 12, "policy_kwargs": SMALL, "seed": 0, "learning_rate": 0.01}
    model = SequencePPO("GPTPolicy", env, kl={"coef": 0.1, "reference": cloned}, **settings)
    model.learn(96)
    theirs = agents.load(cloned).policy
    batch = next(model.batches(np.arange(len(model.rollout.sequences.sizes))))
    read = batch.tokens, batch.at, batch.actions, batch.allowed
    found, expected = reference_log_probs(model, theirs)
    torch.testing.assert_close(found, expected)
    moved = tmp_path / "moved.zip"
    cloned.rename(moved)  # what we saved does not need it any more
    try:
        model.save(tmp_path / "ours")
        again = SequencePPO.load(tmp_path / "ours", env)
    finally:
        moved.rename(cloned)
    assert_same_model(model, again)
    again.learn(48, reset_num_timesteps=False)
    torch.testing.assert_close(again.reference.log_prob(*read), expected)


def test_a_model_that_is_read_leaves_the_draws_alone(cloned):
    """Its seed, 5, is not the learner's."""
    after = []
    for kl in ({"coef": 0.1}, {"coef": 0.1, "reference": cloned}):
        env = dialgym.sb3_vec_env(ID, 4, seed=0)
        settings = {"policy_kwargs": {"n_layer": 1, "n_embd": 24, "n_head": 2}, "seed": 0}
        model = SequencePPO("GPTPolicy", env, kl=kl, **settings)
        after.append(torch.rand(3))
        before = torch.get_rng_state()
        start_from(model.policy, cloned)
        assert torch.equal(before, torch.get_rng_state())
    assert torch.equal(*after)


def test_a_loaded_model_may_be_given_a_reference_or_none(tmp_path):
    env = dialgym.sb3_vec_env(ID, 4, seed=0)
    settings = {"policy_kwargs": {"n_layer": 1, "n_embd": 24, "n_head": 2}, "n_steps": 12}
    SequencePPO("GPTPolicy", env, seed=0, **settings).learn(48).save(tmp_path / "without")
    model = agents.load(tmp_path / "without", env=env, kl={"coef": 0.1})
    model.learn(48, reset_num_timesteps=False)
    theirs = agents.load(tmp_path / "without").policy
    torch.testing.assert_close(*reference_log_probs(model, theirs))
    model.save(tmp_path / "with")
    assert agents.load(tmp_path / "with", kl=None).reference is None


def test_a_run_has_a_supervised_model_as_start_and_reference(cloned, tmp_path):
    small = {"n_steps": 12, "batch_size": 96, "kl": {"coef": 0.1, "reference": str(cloned)}}
    small["policy_kwargs"] = {"n_layer": 1, "n_embd": 24, "n_head": 2}
    arguments = {"n_envs": 4, "hyperparameters": small, "progress_bar": False, "log_dir": tmp_path}
    model = train(ID, "ppo", total_timesteps=48, init_from=cloned, **arguments)
    assert abs(model.logger.name_to_value.get("reference/kl", 0.0)) < 1e-5
    assert (tmp_path / "model.zip").exists()


def test_a_model_that_does_not_fit_is_one_clear_error(cloned, tmp_path):
    def learner(model, env=ID, **settings):
        made = dialgym.sb3_vec_env(env, 2, **settings)
        return SequencePPO("GPTPolicy", made, kl={"coef": 0.1, "reference": model})

    with pytest.raises(FileNotFoundError, match=r"no saved model at '.*nothing.zip'"):
        learner(tmp_path / "nothing.zip")
    with pytest.raises(ValueError, match=r"reference '.*' has another vocabulary: expected"):
        learner(cloned, tokenizer="word")
    with pytest.raises(ValueError, match=r"reads \d+ tokens, but the window here is \d+"):
        learner(cloned, turns=9)
    other = collected(SequencePPO, make_vec_env(Echo, 2, seed=0), **STEPS)
    words = SequencePPO(
        "GPTPolicy", dialgym.sb3_vec_env(ID, 2, tokenizer="word"), policy_kwargs=SMALL
    )
    with pytest.raises(ValueError, match=r"cannot start from .* has another vocabulary"):
        start_from(words.policy, other)
    words.save(tmp_path / "words")
    with pytest.raises(ValueError, match="Observation spaces do not match"):
        SequencePPO.load(tmp_path / "words", dialgym.sb3_vec_env(ID, 2))
