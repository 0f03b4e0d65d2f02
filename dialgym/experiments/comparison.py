"""What can be concluded from the returns of several policies.

Arrays of returns are (K, E): K seeds of training (or of evaluation), E episodes of each. Episodes
of a seed are the same for every policy, so that column e of two policies is the same dialogue.
"""

from collections.abc import Sequence
from math import comb
from typing import NamedTuple

import numpy as np

from dialgym.experiments.statistics import RESAMPLES, interval
from dialgym.optional import require

Interval = tuple[float, float]


class Estimate(NamedTuple):
    """A figure with its 95 % interval."""

    value: float
    interval: Interval


def mean_difference(first: np.ndarray, second: np.ndarray, seed: int = 0) -> Estimate:
    """How much higher the mean return of the first policy is, episode by episode.

    Differences of the same episodes are resampled, each seed's by themselves, so what is common
    to both policies (a hard secret, a patient user) does not widen the interval.

    Args:
        first, second: (K, E) returns in the same episodes.
        seed: of the bootstrap.

    Raises:
        ValueError: the shapes differ, or there is no episode.
    """
    differences = _paired(first) - _paired(second, np.shape(first))
    means = [row[picked].mean(-1) for row, picked in _resamples(differences, seed)]
    return Estimate(float(differences.mean()), interval(np.mean(means, axis=0)))


def probability_of_improvement(first: np.ndarray, second: np.ndarray, seed: int = 0) -> Estimate:
    """How likely a run of the first algorithm is better than a run of the second.

    P(X > Y) + P(X = Y) / 2 over all pairs of seeds' means X and Y, with a bootstrap interval over
    seeds (Agarwal et al. 2021, section 4.3). An interval that holds 0.5 is a tie.

    Args:
        first, second: (K, E) and (L, F) returns; a row is a run.
        seed: of the bootstrap.

    Raises:
        ValueError: an array is empty or has not two dimensions.
    """
    x, y = _paired(first).mean(1), _paired(second).mean(1)
    rng = np.random.default_rng(seed)
    drawn = (v[rng.integers(len(v), size=(RESAMPLES, len(v)))] for v in (x, y))
    return Estimate(float(better_pairs(x[None], y[None])[0]), interval(better_pairs(*drawn)))


def performance_profile(returns: np.ndarray, thresholds: Sequence[float]) -> np.ndarray:
    """The share of episodes whose return is above each threshold, (T,) float64.

    Of Agarwal et al. 2021, section 4.1: where one policy's profile is above another's everywhere,
    it is better however returns are summed up.

    Raises:
        ValueError: an array is empty or has not two dimensions.
    """
    values = np.sort(_paired(returns), axis=None)
    above = len(values) - np.searchsorted(values, np.asarray(thresholds, float), side="right")
    return np.asarray(above / len(values))


def pass_hat_k(solved: np.ndarray, k: int) -> float:
    """The probability that k dialogues with the same goal all succeed (Yao et al. 2024, "pass^k").

    The unbiased estimate from n trials of a goal of which c succeed is C(c, k) / C(n, k), and the
    mean over goals is taken. With k = 1 it is the success rate.

    Args:
        solved: (G, n) bool, n trials of each of G goals.
        k: trials that must all succeed, 1 to n.

    Raises:
        ValueError: no trials, or k beyond their number.
    """
    trials = _paired(solved)
    n = trials.shape[1]
    if not 1 <= k <= n:
        raise ValueError(f"pass_hat_k: expected k from 1 to {n} trials of a goal, got {k}")
    counts = np.asarray(trials, bool).sum(1)
    return float(np.mean([comb(int(c), k) / comb(n, k) for c in counts]))


def minimum_detectable_gap(returns: np.ndarray, power: float = 0.8, level: float = 0.95) -> float:
    """The least difference of two algorithms' means that as many seeds show with such a power.

    Of a two-sided t-test over the means of K seeds each, whose deviation is that of `returns`:
    (t_(1 + level) / 2 + t_power) s sqrt(2 / K), with 2 K - 2 degrees of freedom. A difference below
    it may well be there; a table of K seeds would not show it.

    Args:
        returns: (K, E), of one algorithm; K is 2 or more.
        power: how often a difference of this size is to be found.
        level: of confidence.

    Raises:
        ValueError: fewer than two seeds, or a probability that is none.
        ImportError: SciPy, of the extra ``agents``, is not installed.
    """
    means = _paired(returns).mean(1)
    if len(means) < 2:
        raise ValueError("minimum_detectable_gap: expected returns of 2 seeds or more, got 1")
    if not (0 < power < 1 and 0 < level < 1):
        raise ValueError(
            "minimum_detectable_gap: expected power and level between 0 and 1, got "
            f"{power} and {level}"
        )
    freedom = 2 * len(means) - 2
    stats = require("scipy.stats", "agents", "minimum_detectable_gap")
    quantiles = stats.t.ppf([(1 + level) / 2, power], freedom)
    return float(quantiles.sum() * means.std(ddof=1) * np.sqrt(2 / len(means)))


def _paired(values: np.ndarray, shape: tuple[int, ...] | None = None) -> np.ndarray:
    found = np.asarray(values)
    if found.ndim != 2 or not found.size:
        raise ValueError(f"expected a (seeds, episodes) array, got one of shape {found.shape}")
    if shape is not None and found.shape != shape:
        raise ValueError(
            f"expected the same episodes of both policies, got arrays of shape {shape} and "
            f"{found.shape}; evaluate both with the same seeds and episodes"
        )
    return found


def _resamples(values: np.ndarray, seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """For each row the row and (B, E) indices drawn with replacement."""
    rng = np.random.default_rng(seed)
    size = (RESAMPLES, values.shape[1])
    return [(row, rng.integers(values.shape[1], size=size)) for row in values]


def better_pairs(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """(B,) of (B, K) and (B, L): the share of pairs in which x is higher; ties count half."""
    pairs = x[:, :, None] - y[:, None, :]
    return np.asarray(((pairs > 0) + 0.5 * (pairs == 0)).mean((1, 2)))
