"""Rewards of stored dialogues in another unit: the standard deviation of their returns."""

from __future__ import annotations

import numpy as np

from agents.buffers.stored_acts import StoredActs
from dialgym.datasets import ActData, TokenData


def return_deviation(data: TokenData | StoredActs) -> float:
    """Standard deviation of the dialogues' undiscounted returns; 1 where they do not differ."""
    if isinstance(data, StoredActs):
        rewards, offsets = data.data.decisions.rewards, data.data.offsets
    else:
        rewards, offsets = data.reward, data.offsets
    sums = np.append(0.0, rewards.cumsum(dtype=np.float64))[offsets]
    return float(np.diff(sums).std()) or 1.0


def with_reward_scale(data: TokenData | StoredActs, scale: float) -> TokenData | StoredActs:
    """The same dialogues, all rewards and returns times `scale`."""
    if isinstance(data, TokenData):
        return data.with_token_rewards(reward_scale=scale)
    found, factor = data.data.decisions, np.float32(scale)
    scaled = found._replace(
        rewards=factor * found.rewards, returns_to_go=factor * found.returns_to_go
    )
    return StoredActs(ActData(scaled, data.data.offsets, data.data.kind))
