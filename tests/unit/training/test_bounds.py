"""Numbers that no learner can use are one clear error each, wherever they come in."""

import math
import re

import gymnasium as gym
import pytest

import agents
from agents.bounds import BOUNDS, check_bounds

WRONG = {
    "max_grad_norm": (-1.0, 0.0, math.nan),
    "clip_range": (-0.2, math.nan),
    "target_kl": (-1.0, math.nan),
    "gae_lambda": (1.1, -0.1, math.nan),
    "gamma": (1.5, math.inf),
    "n_steps": (0, -8, 2.5),
    "learning_rate": (-1e-3, math.nan),
}
CASES = [(name, value) for name, values in WRONG.items() for value in values]


@pytest.mark.parametrize(("name", "value"), CASES)
def test_numbers_beyond_their_bounds(name, value):
    with pytest.raises(ValueError, match=f"PPO: expected {name} to be a .*; got {value!r}"):
        check_bounds("PPO", {name: value})


def test_what_is_no_number_is_left():
    given = dict.fromkeys(BOUNDS, lambda progress: progress)
    check_bounds("PPO", {**given, "target_kl": None, "device": math.nan})


@pytest.mark.parametrize(
    "setting", [{"max_grad_norm": -1.0}, {"n_steps": 0}, {"gae_lambda": 1.5}, {"clip_range": -1.0}]
)
def test_a_learner_refuses_them(setting):
    ((name, value),) = setting.items()
    with pytest.raises(ValueError, match=f"{name}.*{re.escape(repr(value))}"):
        agents.SequencePPO("GPTPolicy", gym.make("dialgym/Wordle-v0"), **setting)


@pytest.mark.parametrize("steps", [-1, math.nan, "many", None])
def test_timesteps(steps):
    model = agents.PG(agents.BeliefPolicy, gym.make("dialgym/CamRestaurants-Env1-act-v0"), seed=0)
    with pytest.raises(ValueError, match=r"PG: expected total_timesteps to be a number from 0"):
        model.learn(steps)
