"""Numbers that no learner can use are one clear error each, wherever they come in."""

import math
import re

import gymnasium as gym
import pytest

import agents
from agents.argument_checks import BOUNDS, check_bounds
from agents.registry import ALGORITHMS
from dialgym.errors import arguments_of

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


@pytest.mark.parametrize("steps", [-1, math.nan, "many", "5", None])
@pytest.mark.parametrize(
    ("learner", "id"), [("PG", "CamRestaurants-Env1-act-v0"), ("SequencePPO", "Wordle-20-v0")]
)
def test_timesteps(learner, id, steps):
    policy = "GPTPolicy" if learner == "SequencePPO" else "MlpPolicy"
    model = getattr(agents, learner)(policy, gym.make(f"dialgym/{id}"), seed=0)
    message = f"{learner}: expected total_timesteps to be a number from 0; got .?{steps}"
    with pytest.raises(ValueError, match=message):
        model.learn(steps)


LEARNERS = [row.load() for row in ALGORITHMS.values() if row.home.startswith("agents.")]
STRANGE = [math.nan, math.inf, "many", True, 10**400]
NUMBERS = [
    (cls, name)
    for cls in dict.fromkeys(LEARNERS)
    for name, default in arguments_of(cls).items()
    if name in BOUNDS and isinstance(default, int | float)
]


@pytest.mark.parametrize(("cls", "name"), NUMBERS, ids=lambda x: getattr(x, "__name__", x))
def test_every_number_of_every_learner_is_looked_at_first(cls, name):
    """Before anything else is: there is no env."""
    endless = [math.inf] if BOUNDS[name].endless else []
    for value in (value for value in STRANGE if value not in endless):
        with pytest.raises(ValueError, match=f"{cls.__name__}: expected {name} to be a "):
            cls("a policy", None, **{name: value})


def test_no_number_of_a_learner_is_without_bounds():
    """One that is named here has its own check, or belongs to Stable-Baselines3."""
    own = {"verbose", "seed", "alpha", "tau", "sigma", "nu", "sde_sample_freq", "top", "budget"}
    own |= {"group_size", "resample", "scale", "own_share", "support"}
    names = {
        name
        for cls in LEARNERS
        for name, default in arguments_of(cls).items()
        if isinstance(default, int | float) and not isinstance(default, bool)
    }
    assert names - own - set(BOUNDS) == set()
