"""Memory of transitions: returns of n steps, masks, priorities, heads."""

import gymnasium as gym
import numpy as np
import pytest
from stable_baselines3.common.utils import set_random_seed

from agents.buffers.masked_replay import LEAST, MaskedReplayBuffer
from tests.support.close import assert_close

ACTS, ROWS = 3, 2


def buffer(size=10, **settings):
    spaces = gym.spaces.Box(0, 1, (1,), np.float32), gym.spaces.Discrete(ACTS)
    return MaskedReplayBuffer(size * ROWS, *spaces, device="cpu", n_envs=ROWS, **settings)


def filled(memory, steps, seed=0):
    """The memory after random steps, and the steps: rewards, dones, truncations, masks."""
    rng, said = np.random.default_rng(seed), []
    for step in range(steps):
        rewards = rng.normal(size=ROWS)
        ended = rng.random(ROWS) < 0.3
        cut = ended & (rng.random(ROWS) < 0.5)
        masks = rng.random((ROWS, ACTS)) < 0.5
        here = np.full((ROWS, 1), step / 100)
        infos = [{"TimeLimit.truncated": bool(one)} for one in cut]
        memory.expect(masks)
        memory.add(here, here + 0.01, rng.integers(ACTS, size=ROWS), rewards, ended, infos)
        said.append((rewards, ended, cut, masks))
    return memory, said


@pytest.mark.parametrize("steps", [7, 23])
@pytest.mark.parametrize("n", [1, 3])
def test_returns_are_those_of_a_slow_version(n, steps):
    memory, said = filled(buffer(n_steps=n, gamma=0.9), steps)
    size = min(steps, 10)
    assert memory.size() == size
    batch = memory.at(np.arange(size * ROWS))
    for place in range(size * ROWS):
        column = place % ROWS
        step = round(batch.observations[place, 0].item() * 100)
        total, discount = 0.0, 1.0
        for ahead in range(step, min(step + n, steps)):
            rewards, ended, cut, masks = (part[column] for part in said[ahead])
            total, discount = total + discount * rewards, discount * 0.9
            if ended:
                break
        assert_close(batch.rewards[place], total)
        assert_close(batch.discounts[place], 0.0 if ended and not cut else discount)
        assert_close(batch.next_observations[place, 0], (ahead + 1) / 100)
        assert batch.next_masks[place].tolist() == masks.tolist()


def test_priorities_say_how_often_a_transition_is_drawn_and_weights_take_that_back():
    memory, _ = filled(buffer(alpha=0.5), 4)
    errors = np.array([0.0, 1, 4, 9, 16, 25, 36, 49])
    memory.update_priorities(np.arange(8), errors)
    shares = (errors + LEAST) ** 0.5 / ((errors + LEAST) ** 0.5).sum()
    set_random_seed(0)
    batch = memory.sample(20_000, beta=1.0)
    found = np.bincount(batch.places, minlength=8) / 20_000
    assert np.abs(found - shares).max() < 0.02
    weights = 1 / shares[batch.places]
    assert_close(batch.weights, weights / weights.max())
    assert (memory.sample(20, beta=0.0).weights == 1).all()


def test_what_is_new_has_the_greatest_priority():
    memory, _ = filled(buffer(alpha=1.0), 2)
    assert (memory.priorities[:2] == 1).all()
    memory.update_priorities(np.array([1]), np.array([7.0]))
    filled(memory, 1)
    assert_close(memory.priorities[2], [7.0, 7.0])


def test_each_head_learns_from_its_share():
    memory, _ = filled(buffer(500, n_heads=4, head_probability=0.25), 500)
    assert abs(memory.heads.mean() - 0.25) < 0.03
    assert memory.at(np.arange(6)).heads.shape == (6, 4)
    assert (filled(buffer(n_heads=4), 3)[0].heads == 1).all()


def test_draws_are_uniform_without_priorities():
    memory, _ = filled(buffer(), 5)
    set_random_seed(0)
    counts = np.bincount(memory.sample(10_000).places)
    assert len(counts) == 10
    assert counts.min() > 850
