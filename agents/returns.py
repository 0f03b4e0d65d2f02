"""Returns and advantages of decisions: discounted sums, GAE, V-trace and retrace.

All go through T decisions from the last one to the first. Arrays may have further axes, as (T, N)
of N dialogues side by side, and are summed up in their own dtype; V-trace and retrace take the N
decisions of whole dialogues one after the other, and sum up in 64 bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor


def discounted_returns(
    rewards: np.ndarray, gamma: Any, ends: np.ndarray | None = None, following: Any = 0.0
) -> np.ndarray:
    """G_t = r_t + gamma_t G_t+1 (T, ...), in the dtype of the rewards.

    Args:
        rewards: (T, ...).
        gamma: the discount, one number or that of each step (T, ...).
        ends: (T, ...) bool, the last decision of its dialogue; None for the last of all alone.
        following: what follows an end: a number, (...) after the last step, or with `ends`
            (T, ...); 0 where a dialogue is over.
    """
    found = np.empty_like(rewards)
    carries = np.ndim(gamma) > 0
    next_return = np.zeros(rewards.shape[1:], rewards.dtype) + (following if ends is None else 0)
    for t in range(len(rewards) - 1, -1, -1):
        if ends is not None:
            after = following if np.ndim(following) == 0 else following[t]
            next_return = np.where(ends[t], after, next_return)
        next_return = rewards[t] + (gamma[t] if carries else gamma) * next_return
        found[t] = next_return
    return found


def n_step_returns(rewards: np.ndarray, lengths: np.ndarray, gamma: float) -> np.ndarray:
    """(N,) float32: discounted sums of the first `lengths` (N,) of n rewards (N, n)."""
    steps = np.arange(rewards.shape[1])
    discounts = np.where(steps < lengths[:, None], gamma**steps, 0.0)
    total: np.ndarray = (rewards * discounts).sum(1, dtype=np.float32)
    return total


def turn_returns(rewards: np.ndarray, turns: np.ndarray, gamma: float) -> np.ndarray:
    """(K, N): of each turn the sum of its rewards and of those that follow, gamma a turn.

    Args:
        rewards: (T, N), 0 after the end.
        turns: (T, N) int, the turn that each step is of, from 0.
        gamma: the discount from one turn to the next.
    """
    found = np.zeros((int(turns.max(initial=0)) + 1, rewards.shape[1]))
    np.add.at(found, (turns, np.arange(rewards.shape[1])[None]), rewards)
    return discounted_returns(found, gamma)


def gae(
    rewards: np.ndarray,
    values: np.ndarray,
    dones: np.ndarray,
    last_values: np.ndarray,
    gamma: float | np.ndarray,
    gae_lambda: float | np.ndarray,
) -> np.ndarray:
    """Generalised advantage estimation (Schulman et al. 2016, equation 16), in float32.

    Where an episode was truncated, gamma times the value of its last observation must have been
    added to the reward; the rollout's own end is bootstrapped here. Another party's tokens are not
    among the decisions: one step is from a decision to the next one whatever was said between.

    Args:
        rewards: (T, N).
        values: (T, N) of the observation before each decision.
        dones: (T, N) bool, of decisions with which an episode ended.
        last_values: (N,) of the observations after the last decisions.
        gamma, gae_lambda: discount and decay of each step, one number or (T, N).

    Returns:
        Advantages (T, N); added to `values` they are the TD(lambda) targets of the values.
    """
    not_done = (~dones).astype(np.float32)
    decay = np.broadcast_to(np.float32(gamma) * not_done, rewards.shape)
    lambdas = np.broadcast_to(np.asarray(gae_lambda, np.float32), rewards.shape)
    following = np.concatenate([values[1:], last_values[None]])
    errors = rewards + decay * following - values
    return discounted_returns(errors.astype(np.float32), decay * lambdas)


def turn_gae(
    rewards: np.ndarray,
    values: np.ndarray,
    dones: np.ndarray,
    last_values: np.ndarray,
    ends: np.ndarray,
    gamma: float,
    gae_lambda: float,
) -> tuple[np.ndarray, np.ndarray]:
    """An utterance as one action: all its tokens get the advantage of its first.

    Discount and decay apply from turn to turn, not from token to token. See `gae` for the
    arguments; `ends` (T, N) bool are the decisions that end an utterance.

    Returns:
        Advantages (T, N), and targets of the values (T, N), which are those of single tokens.
    """
    by_token = gae(
        rewards,
        values,
        dones,
        last_values,
        np.where(ends, np.float32(gamma), np.float32(1)),
        np.where(ends, np.float32(gae_lambda), np.float32(1)),
    )
    begins = np.concatenate([np.ones_like(ends[:1]), ends[:-1]])
    step = np.arange(len(ends))[:, None]
    first = np.maximum.accumulate(np.where(begins, step, 0), axis=0)
    return np.take_along_axis(by_token, first, 0), by_token + values


def vtrace(
    rewards: Tensor,
    values: Tensor,
    ratios: Tensor,
    last: Tensor,
    following: Tensor,
    gamma: float,
    gae_lambda: float,
) -> tuple[Tensor, Tensor]:
    """Targets v_t of the values, and advantages r_t + gamma v_t+1 - V_t: (N,) each.

    v_t = V_t + c_t (r_t + gamma V_t+1 - V_t) + gamma lambda c_t (v_t+1 - V_t+1), c_t = min(1,
    ratio). With ratios of 1 and lambda 1 v_t is the return. Source: Espeholt et al. (2018), arXiv
    1802.01561, eq. 1 and remark 2.

    Args:
        rewards: (N,).
        values: V_t (N,).
        ratios: pi(a_t) / mu(a_t) (N,).
        last: (N,) bool, of its dialogue.
        following: (N,), the value of what follows the last decision: 0 after an end.
        gamma: the discount.
        gae_lambda: lambda.
    """
    traces = ratios.clamp(max=1.0)
    columns = [column.tolist() for column in (rewards, values, traces, last, following)]
    targets, advantages = [0.0] * len(rewards), [0.0] * len(rewards)
    next_target = next_value = 0.0
    for t in range(len(rewards) - 1, -1, -1):
        reward, value, trace, is_last, value_after = (column[t] for column in columns)
        if is_last:
            next_target = next_value = value_after
        step = reward + gamma * next_value - value
        advantages[t] = reward + gamma * next_target - value
        targets[t] = value + trace * (step + gamma * gae_lambda * (next_target - next_value))
        next_target, next_value = targets[t], value
    return rewards.new_tensor(targets), rewards.new_tensor(advantages)


def retrace(
    rewards: Tensor,
    values: Tensor,
    q_values: Tensor,
    ratios: Tensor,
    last: Tensor,
    following: Tensor,
    gamma: float,
) -> Tensor:
    """Q_t^ret = r_t + gamma (min(1, ratio_t+1) (Q_t+1^ret - Q_t+1) + V_t+1): (N,).

    Source: Munos et al. (2016), arXiv 1606.02647, with lambda 1; Wang et al. (2017), arXiv
    1611.01224, eq. 5.

    Args:
        rewards, values, ratios, last, following, gamma: as of `vtrace`.
        q_values: Q_t of the acts that were chosen (N,).
    """
    traces = ratios.clamp(max=1.0)
    columns = [column.tolist() for column in (rewards, values, q_values, traces, last, following)]
    found, next_return = [0.0] * len(rewards), 0.0
    for t in range(len(rewards) - 1, -1, -1):
        reward, value, q, trace, is_last, value_after = (column[t] for column in columns)
        found[t] = reward + gamma * (value_after if is_last else next_return)
        next_return = trace * (found[t] - q) + value
    return rewards.new_tensor(found)


def bootstrap_values(cut: Tensor, values: Tensor) -> Tensor:
    """(N,): the values (K,) of what would have followed the K decisions cut off, else 0."""
    found = torch.zeros(len(cut), device=cut.device)
    found[cut] = values
    return found
