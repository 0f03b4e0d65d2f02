"""Returns, V-trace and retrace: what the decisions of whole dialogues are worth.

Each function goes through N decisions, dialogue by dialogue, from the last one to the first.
"""

from __future__ import annotations

import torch
from torch import Tensor


def discounted(rewards: Tensor, last: Tensor, ahead: Tensor, gamma: float) -> Tensor:
    """G_t = r_t + gamma G_t+1 (N,).

    Args:
        rewards: (N,).
        last: (N,) bool, of its dialogue.
        ahead: (N,), the value of what follows the last decision: 0 after an end.
        gamma: the discount.
    """
    found, later = [0.0] * len(rewards), 0.0
    columns = list(zip(rewards.tolist(), last.tolist(), ahead.tolist()))
    for t in range(len(columns) - 1, -1, -1):
        reward, is_last, value_ahead = columns[t]
        later = reward + gamma * (value_ahead if is_last else later)
        found[t] = later
    return rewards.new_tensor(found)


def vtrace(
    rewards: Tensor,
    values: Tensor,
    ratios: Tensor,
    last: Tensor,
    ahead: Tensor,
    gamma: float,
    gae_lambda: float,
) -> tuple[Tensor, Tensor]:
    """Targets v_t of the values, and advantages r_t + gamma v_t+1 - V_t: (N,) each.

    v_t = V_t + c_t (r_t + gamma V_t+1 - V_t) + gamma lambda c_t (v_t+1 - V_t+1), c_t = min(1,
    ratio). With ratios of 1 and lambda 1 v_t is the return. Source: Espeholt et al. (2018), arXiv
    1802.01561, eq. 1 and remark 2.

    Args:
        rewards, last, ahead, gamma: as of `discounted`.
        values: V_t (N,).
        ratios: pi(a_t) / mu(a_t) (N,).
        gae_lambda: lambda.
    """
    traces = ratios.clamp(max=1.0)
    columns = [column.tolist() for column in (rewards, values, traces, last, ahead)]
    targets, advantages = [0.0] * len(rewards), [0.0] * len(rewards)
    target_after = value_after = 0.0
    for t in range(len(rewards) - 1, -1, -1):
        reward, value, trace, is_last, value_ahead = (column[t] for column in columns)
        if is_last:
            target_after = value_after = value_ahead
        step = reward + gamma * value_after - value
        advantages[t] = reward + gamma * target_after - value
        targets[t] = value + trace * (step + gamma * gae_lambda * (target_after - value_after))
        target_after, value_after = targets[t], value
    return rewards.new_tensor(targets), rewards.new_tensor(advantages)


def retrace(
    rewards: Tensor,
    values: Tensor,
    q_values: Tensor,
    ratios: Tensor,
    last: Tensor,
    ahead: Tensor,
    gamma: float,
) -> Tensor:
    """Q_t^ret = r_t + gamma (min(1, ratio_t+1) (Q_t+1^ret - Q_t+1) + V_t+1): (N,).

    Source: Munos et al. (2016), arXiv 1606.02647, with lambda 1; Wang et al. (2017), arXiv
    1611.01224, eq. 5.

    Args:
        rewards, last, ahead, gamma: as of `discounted`.
        values: V_t (N,).
        q_values: Q_t of the acts that were chosen (N,).
        ratios: pi(a_t) / mu(a_t) (N,).
    """
    traces = ratios.clamp(max=1.0)
    columns = [column.tolist() for column in (rewards, values, q_values, traces, last, ahead)]
    found, later = [0.0] * len(rewards), 0.0
    for t in range(len(rewards) - 1, -1, -1):
        reward, value, q, trace, is_last, value_ahead = (column[t] for column in columns)
        found[t] = reward + gamma * (value_ahead if is_last else later)
        later = trace * (found[t] - q) + value
    return rewards.new_tensor(found)


def values_ahead(cut: Tensor, after_cut: Tensor) -> Tensor:
    """(N,): the values (K,) of what would have followed at the K decisions that were cut off."""
    ahead = torch.zeros(len(cut), device=cut.device)
    ahead[cut] = after_cut
    return ahead
