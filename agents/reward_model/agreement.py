"""Metrics of a reward model on held-out replies: pairwise accuracy, Pearson, Spearman."""

from __future__ import annotations

import numpy as np


def pairwise_accuracy(rewards: np.ndarray) -> float:
    """Share of pairs (n, 2), the better reply first, that the rewards order so; ties are half."""
    margin = rewards[:, 0] - rewards[:, 1]
    return float(np.mean((margin > 0) + 0.5 * (margin == 0)))


def pearson(a: np.ndarray, b: np.ndarray) -> float:
    """Correlation of (n,) and (n,); 0 where either is constant."""
    a, b = a - a.mean(), b - b.mean()
    scale = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / scale if scale else 0.0


def spearman(a: np.ndarray, b: np.ndarray) -> float:
    """Correlation of ranks, ties at their mean rank."""
    from scipy.stats import rankdata

    return pearson(rankdata(a), rankdata(b))
