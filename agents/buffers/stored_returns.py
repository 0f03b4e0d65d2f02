"""Returns of stored dialogues, and rewards in units of their standard deviation."""

from __future__ import annotations

import numpy as np

from agents.buffers.stored_acts import StoredActs
from dialgym.datasets import ActData, TokenData


def dialogue_returns(data: TokenData | StoredActs) -> tuple[np.ndarray, np.ndarray]:
    """Undiscounted returns (N,) float64 of dialogues, and whether (N,) anything was chosen."""
    if isinstance(data, StoredActs):
        rewards, offsets = data.data.decisions.rewards, data.data.offsets
        chosen = np.ones(len(rewards), bool)
    else:
        rewards, offsets, chosen = data.reward, data.offsets, data.is_action
    count = len(offsets) - 1
    owner = np.repeat(np.arange(count), np.diff(offsets))[chosen]
    return np.bincount(owner, rewards[chosen], count), np.bincount(owner, minlength=count) > 0


def return_deviation(data: TokenData | StoredActs) -> float:
    """Standard deviation of the dialogues' returns; 1 where they do not differ."""
    return float(dialogue_returns(data)[0].std()) or 1.0


def with_reward_scale(data: TokenData | StoredActs, scale: float) -> TokenData | StoredActs:
    """The same dialogues, all rewards and returns times `scale`."""
    if isinstance(data, TokenData):
        return data.with_token_rewards(reward_scale=scale)
    found, factor = data.data.decisions, np.float32(scale)
    scaled = found._replace(
        rewards=factor * found.rewards, returns_to_go=factor * found.returns_to_go
    )
    return StoredActs(ActData(scaled, data.data.offsets, data.data.kind))
