"""Offline learners of a small word game: how the tests make them, and that their runs go on."""

from collections.abc import Callable, Mapping
from typing import Any

import dialgym
from tests.support.resuming import assert_same_model

ID = "dialgym/Wordle-20-v0"
SMALL = {"n_layer": 2, "n_head": 2, "n_embd": 16}


def learner(
    algorithm: Any, games: Any = None, policy: Mapping[str, Any] | None = None, **settings: Any
) -> Any:
    """A learner of stored games with a tiny network."""
    kwargs = {**SMALL, **(policy or {})}
    env = dialgym.sb3_vec_env(ID, 2)
    return algorithm("GPTPolicy", env, games, policy_kwargs=kwargs, seed=0, **settings)


def assert_two_parts_are_one_run(
    make: Callable[[], Any], games: Any, folder: Any, env: Any = None
) -> tuple[Any, Any]:
    """A run that is saved and loaded after three steps comes to the weights of a whole one.

    Returns the learners as they were after three steps and after six.
    """
    whole, half = make(), make()
    whole.learn(6)
    half.learn(3)
    half.save(folder / "half")
    env = env or dialgym.sb3_vec_env(ID, 2)
    other = type(half).load(folder / "half", env, dataset=games)
    assert other.num_timesteps == 3
    other.learn(3, reset_num_timesteps=False)
    assert other.num_timesteps == whole.num_timesteps == 6
    assert_same_model(whole, other)
    return half, other
