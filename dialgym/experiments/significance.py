"""Significance of differences between trainings: Welch's t test, Holm's correction."""

from collections.abc import Sequence

import numpy as np

from dialgym.optional import require

ALPHA = 0.05
"""The rate of errors that tables hold to: over a whole family of comparisons, by `holm`."""


def welch_p_value(first: np.ndarray, second: np.ndarray) -> float:
    """Two-sided p-value of Welch's t test, which lets both variances differ (Welch 1947).

    Args:
        first: (K,) means of trainings.
        second: (L,) means of trainings.

    Returns:
        1 where the means are equal, and where either has one training alone: nothing tells how it
        varies. 0 where they differ and no training does.

    Raises:
        ImportError: SciPy, of the extra ``agents``, is not installed.
    """
    gap = float(np.mean(first) - np.mean(second))
    if gap == 0 or min(len(first), len(second)) < 2:
        return 1.0
    parts = np.array([np.var(part, ddof=1) / len(part) for part in (first, second)])
    if parts.sum() == 0:
        return 0.0
    freedom = parts.sum() ** 2 / (parts**2 / [len(first) - 1, len(second) - 1]).sum()
    stats = require("scipy.stats", "agents", "tests of differences")
    return float(2 * stats.t.sf(abs(gap) / np.sqrt(parts.sum()), freedom))


def holm(p_values: Sequence[float] | np.ndarray) -> np.ndarray:
    """Adjust the p-values of a family of tests, in their order (Holm 1979).

    Those that are at most `ALPHA` are significant at a family-wise error rate of `ALPHA`, however
    the tests depend on one another. With p(1) <= ... <= p(m) ascending, the k-th becomes
    max over j <= k of min(1, (m - j + 1) p(j)).

    Args:
        p_values: (m,), each from 0 to 1.

    Returns:
        (m,) float64.

    Raises:
        ValueError: a p-value is not between 0 and 1.
    """
    values = np.asarray(p_values, np.float64)
    if values.ndim != 1 or not ((values >= 0) & (values <= 1)).all():
        raise ValueError(f"holm: expected p-values from 0 to 1, got {p_values!r:.80}")
    order = np.argsort(values, kind="stable")
    steps = np.minimum(1.0, np.arange(len(values), 0, -1) * values[order])
    adjusted = np.empty_like(values)
    adjusted[order] = np.maximum.accumulate(steps)
    return adjusted
