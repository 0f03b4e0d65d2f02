"""Masks of episodes that a limit cuts off, in `predict`, and masks that allow nothing."""

import warnings

import gymnasium as gym
import numpy as np
import pytest
import torch
from stable_baselines3.common.utils import set_random_seed
from stable_baselines3.common.vec_env import DummyVecEnv

import agents
import dialgym
from agents import (
    A2C,
    ACER,
    BBQN,
    BC,
    DQN,
    ENAC,
    GDPL,
    ILQL,
    PG,
    TRACER,
    Committee,
    FeudalDQN,
    GPSarsa,
    SequencePPO,
)
from agents.models.act_masks import allowed, allowed_at_the_end, random_acts
from agents.models.masking import fitting
from tests.support.act_mdps import Table, TableEnv, beliefs_of, five_states, vec_env
from tests.support.close import assert_close

ACTS = "SlotFilling-act-v0"
LEARNERS = (A2C, ACER, BBQN, Committee, DQN, ENAC, FeudalDQN, GPSarsa, TRACER)
"""Of one act at a time, in any env."""


def to_and_fro():
    """Two states that lead to one another, each with its own act; a step is the limit.

    A third act is never allowed.
    """
    masks = np.array([[True, False, False], [False, True, False]])
    return Table(np.array([[1] * 3, [0] * 3]), np.zeros((2, 3)), masks, limit=1)


class SaysMasks(gym.Wrapper):
    """Puts the mask of each observation into its info, as views with `action_masks=True` do."""

    def step(self, action):
        *found, info = self.env.step(action)
        return *found, {**info, "action_mask": self.env.action_masks().astype(np.int8)}

    def action_masks(self):
        return self.env.action_masks()


def env_of(table, says_masks):
    if not says_masks:
        return vec_env(table)
    return DummyVecEnv([lambda: SaysMasks(TableEnv(table))])


# After a cut


@pytest.mark.parametrize("lower", [0.0, 30.0])
@pytest.mark.parametrize("says_masks", [True, False])
def test_gp_sarsa_takes_no_forbidden_act_for_what_would_have_followed(says_masks, lower):
    """By the info's mask, or else that of the last act; it believes in 10, 3 and 20, or less."""
    model = GPSarsa("GPPolicy", env_of(to_and_fro(), says_masks), gamma=0.5, sigma=0.1, seed=0)
    beliefs, names = beliefs_of(vec_env(to_and_fro())), model.coordinates.acts
    seen = model.coordinates(np.repeat(beliefs[[1]], 3, 0))
    values = np.array([[10.0], [3.0], [20.0]]) - lower
    model.process.observe(seen, names, values, np.full(3, 1e-6))
    found = []
    model.absorb = found.append
    model.learn(1)
    assert_close(found[0].returns, 0.5 * values[[1 if says_masks else 0]], 1e-4)


@pytest.mark.parametrize("says_masks", [True, False])
def test_what_ends_is_remembered_with_its_last_mask(says_masks):
    last = [to_and_fro().masks[1 if says_masks else 0].tolist()]
    model = ACER("MlpPolicy", env_of(to_and_fro(), says_masks), learning_starts=99, seed=0)
    model.learn(1)
    batch = model.replay_buffer.new()
    assert batch.cut.tolist() == [True]
    assert batch.masks_after_cut.tolist() == last
    model = DQN("MlpPolicy", env_of(to_and_fro(), says_masks), learning_starts=99, seed=0)
    model.learn(1)
    assert model.replay_buffer.at(np.zeros(1, int)).next_masks.tolist() == last


def test_a_dialogue_that_ended_by_itself_may_allow_nothing():
    masks, nothing = np.array([[True, False]] * 2), np.zeros(2, np.int8)
    infos = [{"action_mask": nothing}, {"action_mask": nothing, "TimeLimit.truncated": False}]
    assert allowed_at_the_end(masks, infos, gym.spaces.Discrete(2)).tolist() == masks.tolist()
    cut = [{"action_mask": nothing, "TimeLimit.truncated": True}]
    with pytest.raises(ValueError, match="at least one act in each row"):
        allowed_at_the_end(masks[:1], cut, gym.spaces.Discrete(2))


# In predict


def made(algorithm):
    """An untrained model of an act view, and its env."""
    env = dialgym.sb3_vec_env(ACTS, 2, seed=0, monitor=False)
    name = "GPPolicy" if issubclass(algorithm, GPSarsa) else "MlpPolicy"
    return algorithm(name, env, seed=0, device="cpu"), env


EVERYBODY = (*LEARNERS, BC, GDPL, ILQL, PG)


@pytest.mark.parametrize("algorithm", EVERYBODY)
def test_predict_without_masks_warns_once_where_the_env_has_some(algorithm, tmp_path):
    model, env = made(algorithm)
    seen, masks = env.reset(), np.stack(env.env_method("action_masks"))
    model.save(tmp_path / "model.zip")
    for known in (model, agents.load(tmp_path / "model.zip", device="cpu")):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            acts, _ = known.predict(seen, action_masks=masks)
        assert masks[[0, 1], acts].all()
        message = f"{algorithm.__name__} learned within masks that only its env knows"
        with pytest.warns(UserWarning, match=message):
            known.predict(seen)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            known.predict(seen)


def test_predict_is_quiet_where_there_are_no_masks():
    env = DummyVecEnv([lambda: gym.make("CartPole-v1")])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        A2C("MlpPolicy", env, seed=0).predict(env.reset())


# Rows that allow nothing


@pytest.mark.parametrize("algorithm", [*EVERYBODY, SequencePPO])
def test_a_row_that_allows_nothing_is_refused_in_predict(algorithm):
    if algorithm is SequencePPO:
        env = dialgym.sb3_vec_env("Wordle-20-v0", 2, seed=0)
        model = SequencePPO("GPTPolicy", env, policy_kwargs={"n_layer": 1, "n_embd": 16}, seed=0)
    else:
        model, env = made(algorithm)
    masks = np.ones((2, int(env.action_space.n)), bool)
    masks[1] = False
    with pytest.raises(ValueError, match="at least one act in each row, got none in row 1"):
        model.predict(env.reset(), action_masks=masks)


@pytest.mark.parametrize("algorithm", [*LEARNERS, PG])
def test_a_row_that_allows_nothing_is_refused_in_training(algorithm, monkeypatch):
    model, env = made(algorithm)
    nothing = np.zeros(int(env.action_space.n), bool)
    monkeypatch.setattr(env, "env_method", lambda *_, **__: [nothing, nothing])
    with pytest.raises(ValueError, match="at least one act in each row, got none in row 0"):
        model.learn(10)


def test_of_several_acts_none_has_to_be_chosen():
    space = gym.spaces.MultiBinary(2)
    assert fitting(np.zeros((3, 2)), 3, space).shape == (3, 2)
    pairs = np.array([[True, False, True, True]])  # the first can only be 0
    assert fitting(pairs, 1, space).tolist() == pairs.tolist()
    with pytest.raises(ValueError, match="got none in row 0"):
        fitting([[False, False, True, True]], 1, space)
    with pytest.raises(ValueError, match=r"action_masks: expected \(1, 2\), got \(3,\)"):
        fitting([1, 1, 1], 1, space)
    one = gym.spaces.Discrete(2)
    assert fitting(torch.ones(1, 2), 1, one).tolist() == fitting(None, 1, one).tolist() == [[1, 1]]


def test_masks_of_an_env_are_those_of_its_rows():
    env = vec_env(five_states(), 3)
    env.reset()
    assert allowed(env).tolist() == [five_states().masks[0].tolist()] * 3


def test_random_acts_are_allowed_and_equally_likely():
    masks = np.tile([True, False, True, True], (6000, 1))
    set_random_seed(0)
    counts = np.bincount(random_acts(masks), minlength=4)
    assert counts[1] == 0
    assert np.abs(counts[[0, 2, 3]] - 2000).max() < 200
