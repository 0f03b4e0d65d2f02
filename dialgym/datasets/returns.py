"""Returns of stored dialogues: what each decision and what followed it earned."""

from __future__ import annotations

import numpy as np


def returns_to_go(reward: np.ndarray, is_action: np.ndarray, gamma: float = 1.0) -> np.ndarray:
    """(B, L) float32: at each action ``G = r + gamma G'``, G' that of the next action; else 0."""
    earned = np.where(is_action, reward, np.float32(0)).astype(np.float64)
    if gamma == 1:
        sums = earned[:, ::-1].cumsum(1)[:, ::-1]
        return np.where(is_action, sums, 0).astype(np.float32)
    result = np.zeros(reward.shape, np.float32)
    next_return = np.zeros(len(reward))
    for p in range(reward.shape[1] - 1, -1, -1):
        next_return = np.where(is_action[:, p], earned[:, p] + gamma * next_return, next_return)
        result[:, p] = np.where(is_action[:, p], next_return, 0)
    return result


def flat_returns_to_go(rewards: np.ndarray, last: np.ndarray, gamma: float) -> np.ndarray:
    """(M,): the same of decisions one after the other; `last` (M,) bool ends a dialogue."""
    result, next_return = np.zeros(len(rewards)), 0.0
    for i in range(len(rewards) - 1, -1, -1):
        next_return = rewards[i] + (0.0 if last[i] else gamma * next_return)
        result[i] = next_return
    return result
