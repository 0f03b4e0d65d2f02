"""Differences of two algorithms: their intervals, Welch's t test, Holm's correction.

Arrays of values are (K, E): K runs (trainings) of E episodes each.
"""

from collections.abc import Iterable, Sequence
from math import comb
from typing import NamedTuple

import numpy as np

from dialgym.experiments.statistics import (
    QUANTILE,
    ROUNDING,
    Estimate,
    Interval,
    MeanVariance,
    mean_variance,
    runs_of,
    sum_variance,
    t_estimate,
)
from dialgym.optional import require

ALPHA = 0.05
"""The rate of errors that tables hold to: over a whole family of comparisons, by `holm`."""
GRID = 2001
"""Probabilities of which those are found that an estimate leaves open."""


class Difference(NamedTuple):
    """A difference of two algorithms.

    Attributes:
        estimate: by how much the first is higher.
        p_value: two-sided, of no difference; 1 where nothing tells how they vary.
    """

    estimate: Estimate
    p_value: float


def welch_difference(
    pairs: Iterable[tuple[np.ndarray, np.ndarray, bool]], bounds: Interval | None = None
) -> Difference:
    """Estimate by how much the first of each pair of policies is higher, the mean over pairs.

    Interval and test are Student's t over runs, each pair's variances by themselves, with the
    degrees of freedom of Welch and Satterthwaite: a bootstrap of three runs would call one pair in
    four of equal policies different. Where there is one run, its episodes vary. Runs may be alike
    by chance: of a figure with bounds, their mean varies at least as that of their episodes does.
    Of any other figure that varies nowhere there is no interval, and the p-value is 1.

    Args:
        pairs: (K, E) and (L, F) values, and True where their rows are runs of the same seeds,
            which have played the same dialogues and are compared one by one.
        bounds: the least and the greatest value that there can be, if there are any.

    Raises:
        ImportError: SciPy, of the extra ``agents``, is not installed.
    """
    values: list[float] = []
    variances: list[MeanVariance] = []
    scale = 0.0
    for first, second, paired in pairs:
        values.append(float(first.mean() - second.mean()))
        scale = max(scale, float(np.abs(first).max()), float(np.abs(second).max()))
        parts = [first - second] if paired else [first, second]
        variances += [_at_least_of_episodes(part, paired, bounds) for part in parts]
    value, (variance, freedom) = float(np.mean(values)), sum_variance(variances)
    variance /= len(values) ** 2
    if abs(value) <= ROUNDING * scale:
        value = 0.0
    elif variance == 0:
        variance = np.nan
    return Difference(
        t_estimate(value, variance, freedom), _t_test_p_value(value, variance, freedom)
    )


def _at_least_of_episodes(
    values: np.ndarray, paired: bool, bounds: Interval | None
) -> MeanVariance:
    """Variance of the mean of (K, E) values within bounds, or of differences of such in pairs.

    It is no less than that of as many independent episodes and two more, as likely at either bound
    (Agresti and Caffo 2000; of pairs, Agresti and Min 2005), which is above 0 at a bound, too.
    """
    found = mean_variance(values)
    if bounds is None or values.shape[1] < 2:
        return found
    low, high = bounds
    centred, n = values if paired else values - (low + high) / 2, values.size + 2
    added = (high - low) ** 2 * (1.0 if paired else 0.5)
    episodes = (float((centred**2).sum() + added) / n - (float(centred.sum()) / n) ** 2) / n
    return found._replace(variance=max(found.variance, episodes))


def _t_test_p_value(value: float, variance: float, freedom: float) -> float:
    if value == 0 or np.isnan(variance):
        return 1.0
    special = require("scipy.special", "agents", "tests of differences")
    return float(2 * special.stdtr(freedom, -abs(value) / variance**0.5))


def sign_test(differences: np.ndarray) -> float:
    """One-sided p-value of no more differences above 0 than below (the exact sign test).

    Of n that are not 0 the number above 0 is binomial with 1/2; with differences of two shares this
    is McNemar's exact test (1947). 1 where all are 0.
    """
    above, n = int((differences > 0).sum()), int((differences != 0).sum())
    return sum(comb(n, k) for k in range(above, n + 1)) / 2**n


def welch_p_value(first: np.ndarray, second: np.ndarray) -> float:
    """Two-sided p-value of Welch's t test, which lets both variances differ (Welch 1947).

    Args:
        first: (K,) means of trainings.
        second: (L,) means of trainings.

    Returns:
        1 where the means are equal, and where either has one training alone, or those of neither
        differ: nothing tells how they vary.

    Raises:
        ImportError: SciPy, of the extra ``agents``, is not installed.
    """
    pair = np.asarray(first, float)[:, None], np.asarray(second, float)[:, None], False
    return welch_difference([pair]).p_value


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


# Probability of improvement


def probability_of_improvement(first: np.ndarray, second: np.ndarray) -> Estimate:
    """Estimate how likely a run of the first algorithm is better than a run of the second.

    P(X > Y) + P(X = Y) / 2 over all pairs of seeds' means X and Y (Agarwal et al. 2021, section
    4.3), the Mann-Whitney statistic; see `mean_improvement`. An interval that holds 0.5 is a tie.

    Args:
        first, second: (K, E) and (L, F) returns; a row is a run.

    Raises:
        ValueError: an array is empty or has not two dimensions.
    """
    return mean_improvement([(first, second)])


def mean_improvement(pairs: Iterable[tuple[np.ndarray, np.ndarray]]) -> Estimate:
    """Estimate the mean over several environments of `probability_of_improvement`.

    The interval holds each probability from which the estimate is at most 1.96 standard errors
    away, those of that very probability (Newcombe 2006, method 5): three runs that are all better
    than three others leave .49 to 1, where a bootstrap would say 1 to 1.
    """
    means = [(runs_of(first).mean(1), runs_of(second).mean(1)) for first, second in pairs]
    value = float(np.mean([_better_share(x, y) for x, y in means]))
    possible = np.linspace(0, 1, GRID)
    variance = sum(_mann_whitney_variance(possible, len(x), len(y)) for x, y in means)
    far = np.abs(value - possible) > QUANTILE * np.sqrt(variance) / len(means) + 1e-9
    low, high = possible[~far][[0, -1]]
    return Estimate(value, min(float(low), value), max(float(high), value))


def _better_share(x: np.ndarray, y: np.ndarray) -> float:
    """Share of the pairs of (K,) and (L,) in which x is higher; ties count half."""
    pairs = x[:, None] - y
    return float(((pairs > 0) + 0.5 * (pairs == 0)).mean())


def _mann_whitney_variance(p: np.ndarray, m: int, n: int) -> np.ndarray:
    """Variance of the share of m n pairs where the probability is p (Newcombe 2006)."""
    more = (m + n) / 2 - 1
    return np.asarray(p * (1 - p) * (1 + more * ((1 - p) / (2 - p) + p / (1 + p))) / (m * n))
