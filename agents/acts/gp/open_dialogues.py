"""Dialogues while they are held, and the returns of their decisions when they have ended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from agents.returns import discounted_returns
from agents.storage.values import storable


class Decision(NamedTuple):
    """One of a dialogue that is being held."""

    belief: np.ndarray  # (B,)
    act: int
    rewards: np.ndarray  # (K,), of each objective


class Returns(NamedTuple):
    """n decisions of dialogues that have ended, and what they led to."""

    beliefs: np.ndarray  # (n, B)
    acts: np.ndarray  # (n,) int64
    returns: np.ndarray  # (n, K), discounted
    noise: np.ndarray  # (n,), variances in units of sigma squared

    @classmethod
    def joined(cls, parts: Sequence[Returns]) -> Returns:
        """Join the decisions of several dialogues."""
        return cls(*map(np.concatenate, zip(*parts)))


class BootstrapValue(NamedTuple):
    """Estimated value of what follows a dialogue that a limit cut off."""

    mean: np.ndarray  # (K,)
    noise: float  # variance, in units of sigma squared, that of a return included


@storable
class OpenDialogues:
    """The dialogues that are being held, one in each row of the env.

    Args:
        rows: of the env.
        gamma: discount.
    """

    def __init__(self, rows: int, gamma: float) -> None:
        self.gamma = gamma
        self.decisions: list[list[Decision]] = [[] for _ in range(rows)]

    def add(self, beliefs: np.ndarray, acts: np.ndarray, rewards: np.ndarray) -> None:
        """The next decision of each row: (n, B), (n,) and (n, K)."""
        for dialogue, belief, act, reward in zip(self.decisions, beliefs, acts.tolist(), rewards):
            dialogue.append(Decision(belief, act, reward))

    def end(self, row: int, following: BootstrapValue | None = None) -> Returns:
        """The returns of a row's dialogue, R_t = r_t + gamma R_t+1; the next one begins.

        Args:
            row: whose dialogue has ended.
            following: what would have followed, where a limit cut it off.
        """
        decisions, self.decisions[row] = self.decisions[row], []
        beliefs, acts, rewards = map(np.array, zip(*decisions))
        mean, noise = (0.0, 0.0) if following is None else following
        returns = discounted_returns(rewards, self.gamma, following=mean)
        gaps = discounted_returns(np.zeros(len(acts)), self.gamma**2, following=noise)
        return Returns(beliefs, acts, returns, 1.0 + gaps)
