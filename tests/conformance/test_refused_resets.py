"""A reset that is refused leaves everything as it was, generators included, in every id."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import data_equivalence

import dialgym
from tests.conformance.ids import in_full

ROWS = 3
UNKNOWN = {"no such option": 1}
LAST = [{}] * (ROWS - 1) + [UNKNOWN]
REFUSED = [{"seed": -1}, {"options": UNKNOWN}, {"seed": 7, "options": UNKNOWN}]
REFUSED_BY_BATCHES = [
    {"seed": [1, 2, -3]},
    {"options": UNKNOWN},
    {"seed": 7, "options": UNKNOWN},
    {"seed": 7, "options": LAST},
    {"options": {**UNKNOWN, "reset_mask": np.array([True, False, True])}},
    {"seed": "abc"},
    {"seed": 1.5},
    {"options": LAST[1:]},
]


@pytest.mark.parametrize("env_id", in_full())
def test_refused_resets_change_nothing(env_id):
    refused, twin = (gym.make(env_id, disable_env_checker=True).unwrapped for _ in range(2))
    play(refused, twin, REFUSED)


@pytest.mark.parametrize("env_id", in_full())
def test_refused_resets_of_a_batch_change_nothing(env_id):
    play(*(gym.make_vec(env_id, ROWS) for _ in range(2)), REFUSED_BY_BATCHES)


def play(refused, twin, resets):
    """Both are played alike; one is asked for resets that are refused, between its steps."""
    twin.action_space.seed(0)
    assert data_equivalence(refused.reset(seed=3), twin.reset(seed=3))
    for reset in resets:
        with pytest.raises((ValueError, gym.error.Error)):
            refused.reset(**reset)
        action = twin.action_space.sample()
        result = twin.step(action)
        assert data_equivalence(refused.step(action), result)
        if np.all(result[2]) or np.all(result[3]):
            break
    assert data_equivalence(refused.reset(), twin.reset())


@pytest.mark.parametrize("env_id", ["dialgym/Wordle-20-v0", "dialgym/SlotFilling-act-v0"])
def test_a_refused_first_reset_begins_nothing(env_id):
    for env in (gym.make(env_id).unwrapped, gym.make_vec(env_id, ROWS)):
        with pytest.raises(ValueError, match="no such option"):
            env.reset(seed=0, options=UNKNOWN)
        with pytest.raises(gym.error.ResetNeeded):
            env.step(env.action_space.sample())


def test_refused_resets_of_a_two_party_env_change_nothing():
    refused, twin = (dialgym.aec_env("dialgym/Wordle-20-v0") for _ in range(2))
    for env in (refused, twin):
        env.reset(seed=3)
        env.step(5)
    with pytest.raises(ValueError, match="expected one of its"):
        refused.reset(options={"word": "zzzzz"})
    with pytest.raises(gym.error.Error):
        refused.reset(seed=-1)
    for env in (refused, twin):
        env.step(6)
    assert np.array_equal(refused.observe("system"), twin.observe("system"))
    for env in (refused, twin):
        env.reset()
    assert refused.dialogue_state == twin.dialogue_state


@pytest.mark.parametrize("options", [{"index": [2, 0, 1]}, [{"index": i} for i in (2, 0, 1)]])
def test_a_reset_with_options_begins_each_dialogue_once(options, monkeypatch):
    env = gym.make_vec("dialgym/Comments-v0", ROWS)
    initial, begun = type(env.task).initial, []
    monkeypatch.setattr(
        type(env.task),
        "initial",
        lambda self, rng, own=None: begun.append(own) or initial(self, rng, own),
    )
    env.reset(seed=0, options=options)
    assert sorted(own["index"] for own in begun) == [0, 1, 2]
    begun.clear()
    dialgym.make("dialgym/Comments-v0").unwrapped.reset(seed=0, options={"index": 1})
    assert begun == [{"index": 1}]
