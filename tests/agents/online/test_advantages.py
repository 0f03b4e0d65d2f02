"""Advantages against slow versions that follow the definitions word by word."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from stable_baselines3.common.buffers import RolloutBuffer

from agents.online.credit import group_advantages
from agents.online.on_policy import turn_ends
from agents.online.ppo import opened
from agents.returns import gae, turn_gae

T, N = 12, 3
PAIRS = np.array([0, 0, 1, 1])


def rollout(seed: int):
    rng = np.random.default_rng(seed)
    rewards, values = rng.normal(size=(2, T, N)).astype(np.float32)
    return rewards, values, rng.random((T, N)) < 0.3, rng.normal(size=N).astype(np.float32), rng


def slow_advantage(rewards, values, dones, last, gamma, lam, t) -> float:
    """The sum of discounted temporal differences from step t to the end of the episode."""
    total, weight = 0.0, 1.0
    for k in range(t, len(rewards)):
        following = values[k + 1] if k + 1 < len(values) else last
        total += weight * (rewards[k] + gamma * following * (not dones[k]) - values[k])
        weight *= gamma * lam
        if dones[k]:
            break
    return total


@given(st.integers(0, 10**6), st.floats(0, 1), st.floats(0, 1))
def test_gae_is_the_sum_of_temporal_differences(seed, gamma, lam):
    rewards, values, dones, last, _ = rollout(seed)
    fast = gae(rewards, values, dones, last, gamma, lam)
    for n in range(N):
        args = (rewards[:, n], values[:, n], dones[:, n], last[n], gamma, lam)
        slow = [slow_advantage(*args, t) for t in range(T)]
        np.testing.assert_allclose(fast[:, n], slow, atol=1e-4)


def test_gae_is_that_of_the_stock_buffer():
    import torch
    from gymnasium import spaces

    rewards, values, dones, last, _ = rollout(0)
    box = spaces.Box(0, 1, (1,))
    buffer = RolloutBuffer(T, box, spaces.Discrete(2), "cpu", gae_lambda=0.9, gamma=0.95, n_envs=N)
    buffer.rewards, buffer.values = rewards, values
    buffer.episode_starts = np.vstack([np.zeros((1, N)), dones[:-1]]).astype(np.float32)
    buffer.compute_returns_and_advantage(torch.tensor(last), dones[-1])
    np.testing.assert_allclose(
        gae(rewards, values, dones, last, 0.95, 0.9), buffer.advantages, atol=1e-5
    )


def test_monte_carlo_returns_by_hand():
    rewards = np.array([[1.0], [2.0], [4.0], [8.0]], np.float32)
    dones = np.array([[False], [True], [False], [False]])
    values, last = np.zeros((4, 1), np.float32), np.array([16.0], np.float32)
    assert gae(rewards, values, dones, last, 0.5, 1.0)[:, 0].tolist() == [2, 2, 12, 16]


def test_a_turn_ends_where_more_than_one_token_was_added():
    lengths = np.array([[3, 3], [4, 8], [5, 9], [9, 4]])
    dones = np.array([[0, 0], [0, 0], [0, 1], [0, 0]], bool)
    slid = np.zeros((4, 2), bool)
    ends = turn_ends(lengths, np.array([10, 9]), slid, dones)
    assert ends.T.tolist() == [[False, False, True, False], [True, False, True, True]]
    slid[0, 0] = slid[3, 0] = True  # and as many tokens have left
    ends = turn_ends(lengths, np.array([10, 9]), slid, dones)
    assert ends.T.tolist() == [[True, False, True, True], [True, False, True, True]]


@given(st.integers(0, 10**6))
def test_a_turn_is_one_action(seed):
    """The same numbers come from a rollout in which each turn is a single step."""
    rewards, values, dones, last, rng = rollout(seed)
    gamma, lam = 0.8, 0.7
    ends = dones | (rng.random((T, N)) < 0.4)
    ends[-1] = True
    fast, targets = turn_gae(rewards, values, dones, last, ends, gamma, lam)
    for n in range(N):
        stops = np.flatnonzero(ends[:, n])
        starts = np.array([0, *(stops[:-1] + 1)])
        pay = np.add.reduceat(rewards[:, n], starts)
        args = (pay, values[starts, n], dones[stops, n], last[n], gamma, lam)
        slow = [slow_advantage(*args, k) for k in range(len(stops))]
        np.testing.assert_allclose(fast[:, n], np.repeat(slow, stops - starts + 1), atol=1e-4)
        np.testing.assert_allclose(targets[starts, n], slow + values[starts, n], atol=1e-4)


def test_with_one_token_a_turn_both_levels_agree():
    rewards, values, dones, last, _ = rollout(1)
    by_turn, _ = turn_gae(rewards, values, dones, last, np.ones((T, N), bool), 0.9, 0.8)
    np.testing.assert_allclose(by_turn, gae(rewards, values, dones, last, 0.9, 0.8), atol=1e-6)


def test_what_a_limit_cut_off_is_opened_with_the_tag_of_the_learner():
    tokens = np.array([[3, 5, 2, 0, 0], [3, 5, 4, 0, 0], [3, 5, 4, 7, 0], [3, 5, 4, 7, 2]])
    heard = np.array([True, True, False, True])
    expected = [[3, 5, 2, 4, 0], *tokens[1:].tolist()]  # tagged, the learner's own, and full
    assert opened(tokens, np.array([3, 3, 4, 5]), heard, 4).tolist() == expected
    assert opened(tokens, np.array([3, 3, 4, 5]), heard, None) is tokens


def test_group_advantages_by_hand():
    returns = np.array([1.0, 3.0, 0.0, 0.0], np.float32)
    assert group_advantages(returns, PAIRS, "mean", "none").tolist() == [-1, 1, 0, 0]
    assert group_advantages(returns, PAIRS, "leave-one-out", "none").tolist() == [-2, 2, 0, 0]
    assert group_advantages(returns, PAIRS, "mean", "group") == pytest.approx(
        [-1, 1, 0, 0], abs=1e-5
    )
    assert group_advantages(returns, np.zeros(4), "mean", "none").tolist() == [0, 2, -1, -1]
    others = (returns.sum() - returns) / 3
    assert group_advantages(returns, np.zeros(4), "leave-one-out", "none") == pytest.approx(
        returns - others
    )


@pytest.mark.parametrize("baseline", ["mean", "leave-one-out"])
def test_a_group_whose_returns_are_all_equal_has_no_advantages(baseline):
    """Sums of rewards in another order differ by rounding, which is no deviation to divide by."""
    rng = np.random.default_rng(0)
    rewards = rng.normal(size=(40, 4)).astype(np.float32)
    returns = np.stack([rng.permuted(rewards, axis=0).sum(0) for _ in range(16)])
    assert len(np.unique(returns[:, 0])) > 1
    scaled = group_advantages(returns.T.reshape(-1), np.arange(64) // 16, baseline, "group")
    assert (scaled == 0).all()
    exact = np.repeat(np.float32([0.1, -1.7, 1e6, 0.0]), 8)
    assert (group_advantages(exact, np.arange(32) // 8, baseline, "group") == 0).all()
    others = group_advantages(np.array([0.0, 0.0, 1e-3, 0.0]), np.zeros(4), baseline, "group")
    assert others[2] > 1.7
