"""Our batch against Gymnasium's own SyncVectorEnv over single envs: the same to the last info."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

import dialgym  # noqa: F401  (registers the ids)
from tests.conformance.ids import in_full
from tests.support.by_day import by_day
from tests.support.infos import same_infos


@pytest.mark.parametrize("mode", by_day(["NextStep", "SameStep"], "NextStep"))
@pytest.mark.parametrize("env_id", in_full("token"))
@pytest.mark.parametrize("steps", [60, pytest.param(120, marks=pytest.mark.slow)])
def test_batch_equals_sync_vector_env(env_id, mode, steps):
    ours = gym.make_vec(env_id, 3, autoreset_mode=mode)
    theirs = gym.make_vec(
        env_id,
        3,
        vectorization_mode="sync",
        vector_kwargs={"autoreset_mode": AutoresetMode(mode)},
    )
    assert ours.metadata["autoreset_mode"] == theirs.metadata["autoreset_mode"]
    assert ours.observation_space == theirs.observation_space
    assert ours.action_space == theirs.action_space
    assert np.array_equal(ours.reset(seed=3)[0], theirs.reset(seed=3)[0])
    rng = np.random.default_rng(0)
    for _ in range(steps):
        masks = ours.unwrapped.action_masks()
        actions = np.array([rng.choice(np.flatnonzero(row)) for row in masks])
        *batch, info = ours.step(actions)
        *single, expected = theirs.step(actions)
        for array, other in zip(batch, single):
            assert array.dtype == other.dtype
            assert np.array_equal(array, other)
        same_infos(info, expected)
