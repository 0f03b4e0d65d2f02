"""Means, intervals, differences and effect sizes of returns, in NumPy.

Arrays of values are (K, E): K runs (seeds of training or of evaluation) of E episodes each.
Episodes of a seed are the same for every policy: column e of two policies is the same dialogue.
"""

from collections.abc import Iterable, Sequence
from math import comb
from typing import NamedTuple

import numpy as np

from dialgym.optional import require

RESAMPLES = 2000
LEVEL, QUANTILE = 0.95, 1.96
CELLS = 2**22  # counts held in memory at once
Interval = tuple[float, float]


class Estimate(NamedTuple):
    """A figure with its 95 % interval; without finite bounds where nothing tells how it varies."""

    value: float
    low: float
    high: float

    @property
    def interval(self) -> Interval:
        """Both bounds."""
        return self.low, self.high

    @property
    def is_bounded(self) -> bool:
        """Return True if the interval is known."""
        return bool(np.isfinite(self.interval).all())


def format_estimate(
    estimate: Estimate | None, digits: int, percent: bool = False, signed: bool = False
) -> str:
    """Format as ``-2.61 [-2.65, -2.57]``; without an interval the value alone, a dash for None.

    Args:
        estimate: what to format.
        digits: after the point.
        percent: the interval is cut to what a percentage can be, 0 to 100.
        signed: the value has its sign: ``+3.1 [1.0, 5.2]``.
    """
    if estimate is None:
        return "-"
    value, low, high = estimate
    text = f"{value:{'+' if signed else ''}.{digits}f}"
    if not estimate.is_bounded:
        return text
    if percent:
        low, high = max(low, 0.0), min(high, 100.0)
    return f"{text} {format_interval((low, high), digits)}"


def format_interval(bounds: Interval | None, digits: int) -> str:
    """Format as ``[-2.65, -2.57]``, or a dash for None."""
    return "-" if bounds is None else f"[{bounds[0]:.{digits}f}, {bounds[1]:.{digits}f}]"


def wilson(share: float, n: int) -> Estimate:
    """Wilson's interval of a share of n, which holds for shares of 0 and 1 too (Wilson 1927)."""
    spread = QUANTILE**2 / n
    centre = (share + spread / 2) / (1 + spread)
    half = QUANTILE / (1 + spread) * (share * (1 - share) / n + spread / (4 * n)) ** 0.5
    return Estimate(share, min(centre - half, share), max(centre + half, share))


def iqm(values: np.ndarray) -> float:
    """Return the interquartile mean: that of the values without the lowest and highest quarter.

    `int(n / 4)` values are cut from each end, as in ``scipy.stats.trim_mean(values, 0.25)``.
    """
    ordered = np.sort(values, axis=None)
    cut = len(ordered) // 4
    return float(ordered[cut : len(ordered) - cut].mean())


# Bootstrap


class Resampled(NamedTuple):
    """Statistics of each bootstrap resample, both (B,) float64."""

    mean: np.ndarray
    iqm: np.ndarray


def bootstrap(values: np.ndarray, resamples: int = RESAMPLES, seed: int = 0) -> Resampled:
    """Resample (K, E) values with replacement, each of the K strata by itself.

    A resample is drawn as the number of times that each distinct value comes up, a multinomial
    variable; where values are few, as returns often are, that is much quicker than drawing E.
    """
    levels, inverse = np.unique(values, return_inverse=True)
    inverse = inverse.reshape(values.shape)
    rng = np.random.default_rng(seed)
    chunk = max(1, CELLS // len(levels))
    sizes = [min(chunk, resamples - start) for start in range(0, resamples, chunk)]
    parts = [_statistics(levels, _counts(inverse, len(levels), size, rng)) for size in sizes]
    return Resampled(*(np.concatenate(column) for column in zip(*parts)))


def measured_mean(values: np.ndarray) -> Estimate | None:
    """Return the mean of (K, E) measures with its 95 % stratified bootstrap interval.

    Those that are -1, where there was nothing to measure, are left out; None if all are.
    """
    rows = [row[row != -1] for row in np.asarray(values, np.float64)]
    rows = [row for row in rows if len(row)]
    if not rows:
        return None
    every = np.concatenate(rows)
    samples = [
        bootstrap(row[None], seed=k).mean * (len(row) / len(every)) for k, row in enumerate(rows)
    ]
    return Estimate(float(every.mean()), *interval(np.sum(samples, axis=0)))


def _counts(inverse: np.ndarray, size: int, resamples: int, rng: np.random.Generator) -> np.ndarray:
    """Draw how often each level comes up in each resample of all strata, (B, U) int64."""
    counts = np.zeros((resamples, size), np.int64)
    for stratum in inverse:
        shares = np.bincount(stratum, minlength=size) / len(stratum)
        counts += rng.multinomial(len(stratum), shares, resamples)
    return counts


def _statistics(levels: np.ndarray, counts: np.ndarray) -> Resampled:
    n = int(counts[0].sum())
    cut = n // 4
    upto = np.cumsum(counts, 1)  # (B, U)
    middle = np.diff(np.clip(upto, cut, n - cut), axis=1, prepend=cut)
    return Resampled(counts @ levels / n, middle @ levels / (n - 2 * cut))


def resample_runs(values: np.ndarray, stratum: int = 0, seed: int = 0) -> np.ndarray:
    """Draw runs with replacement: their means, (B, K); of a single run its episodes, (B, 1).

    NaN for a single run whose mean alone is known: nothing tells how it varies.
    """
    if values.size == 1:
        return np.full((RESAMPLES, 1), np.nan)
    rng = np.random.default_rng([seed, stratum])
    if len(values) > 1:
        return _draws(values.mean(1), rng)
    return _draws(values[0], rng).mean(1, keepdims=True)


def _draws(values: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Resamples (B, n) of (n,) values."""
    return np.asarray(values[rng.integers(len(values), size=(RESAMPLES, len(values)))])


def interval(samples: np.ndarray, level: float = LEVEL) -> Interval:
    """Return the central interval that holds `level` of the (B,) samples."""
    tail = 100 * (1 - level) / 2
    low, high = np.percentile(samples, [tail, 100 - tail])
    return float(low), float(high)


# Over seeds and environments


class EnvironmentEstimates(NamedTuple):
    """Mean and interquartile mean over several environments, each with several seeds."""

    mean: Estimate
    iqm: Estimate


def t_interval(means: np.ndarray, level: float = LEVEL) -> Interval:
    """Confidence interval of the mean of S numbers (Student's t); infinite for a single one.

    Raises:
        ImportError: SciPy, of the extra ``agents``, is not installed.
    """
    if len(means) < 2:
        return -np.inf, np.inf
    stats = require("scipy.stats", "agents", "intervals of Student's t")
    half = stats.t.ppf((1 + level) / 2, len(means) - 1) * stats.sem(means)
    return float(means.mean() - half), float(means.mean() + half)


def seed_estimate(values: np.ndarray) -> Estimate:
    """Estimate the mean of (S,) seeds, with the interval of `t_interval`."""
    return Estimate(float(values.mean()), *t_interval(values))


def environment_estimates(values: np.ndarray) -> EnvironmentEstimates:
    """Estimate mean and interquartile mean of (K, S) values of K environments and S seeds.

    Intervals are of bootstrap resamples in which each environment's seeds are drawn by themselves
    (Agarwal et al. 2021, arXiv 2108.13264); infinite for a single seed.
    """
    bounds = [(-np.inf, np.inf)] * 2
    if values.shape[1] > 1:
        bounds = [interval(samples) for samples in bootstrap(values)]
    figures = float(values.mean()), iqm(values)
    return EnvironmentEstimates(*(Estimate(f, *b) for f, b in zip(figures, bounds)))


# Differences of two policies


def mean_difference(first: np.ndarray, second: np.ndarray, seed: int = 0) -> Estimate:
    """Estimate how much higher the mean return of the first policy is, episode by episode.

    Differences of the same episodes are resampled, each seed's by themselves, so what is common
    to both policies (a hard secret, a patient user) does not widen the interval.

    Args:
        first, second: (K, E) returns in the same episodes.
        seed: of the bootstrap.

    Raises:
        ValueError: the shapes differ, or there is no episode.
    """
    differences = _runs(first) - _runs(second, np.shape(first))
    rng = np.random.default_rng(seed)
    means = [_draws(row, rng).mean(-1) for row in differences]
    return Estimate(float(differences.mean()), *interval(np.mean(means, axis=0)))


def welch_difference(pairs: Iterable[tuple[np.ndarray, np.ndarray, bool]]) -> Estimate:
    """Estimate by how much the first of each pair of policies is higher, the mean over pairs.

    The interval is Student's t over runs, each pair's variances by themselves, with the degrees of
    freedom of Welch and Satterthwaite: a bootstrap of three runs would call one pair in four of
    equal policies different. Where there is one run, its episodes vary.

    Args:
        pairs: (K, E) and (L, F) values, and True where their rows are runs of the same seeds,
            which have played the same dialogues and are compared one by one.

    Raises:
        ImportError: SciPy, of the extra ``agents``, is not installed.
    """
    values: list[float] = []
    variances: list[MeanVariance] = []
    for first, second, paired in pairs:
        values.append(float(first.mean() - second.mean()))
        parts = [first - second] if paired else [first, second]
        variances += map(mean_variance, parts)
    value = float(np.mean(values))
    half = _welch_half_width(variances) / len(values)
    return Estimate(value, value - half, value + half)


class MeanVariance(NamedTuple):
    """Variance of a mean, and its degrees of freedom."""

    variance: float
    freedom: int


def mean_variance(values: np.ndarray) -> MeanVariance:
    """Variance of the mean of (K, E) values over runs; of one run over its episodes, if several."""
    means = values.mean(1) if len(values) > 1 else values[0]
    if len(means) < 2:
        return MeanVariance(np.nan, 1)
    return MeanVariance(float(means.var(ddof=1) / len(means)), len(means) - 1)


def _welch_half_width(variances: Sequence[MeanVariance]) -> float:
    """Half of the interval of a sum of means."""
    total = sum(one.variance for one in variances)
    if total == 0 or np.isnan(total):
        return total
    freedom = total**2 / sum(one.variance**2 / one.freedom for one in variances)
    stats = require("scipy.stats", "agents", "intervals of differences")
    return float(stats.t.ppf((1 + LEVEL) / 2, freedom) * np.sqrt(total))


def probability_of_improvement(first: np.ndarray, second: np.ndarray, seed: int = 0) -> Estimate:
    """Estimate how likely a run of the first algorithm is better than a run of the second.

    P(X > Y) + P(X = Y) / 2 over all pairs of seeds' means X and Y, with a bootstrap interval over
    seeds (Agarwal et al. 2021, section 4.3). An interval that holds 0.5 is a tie.

    Args:
        first, second: (K, E) and (L, F) returns; a row is a run.
        seed: of the bootstrap.

    Raises:
        ValueError: an array is empty or has not two dimensions.
    """
    return mean_improvement([(first, second)], seed)


def mean_improvement(pairs: Iterable[tuple[np.ndarray, np.ndarray]], seed: int = 0) -> Estimate:
    """Estimate the mean over several environments of `probability_of_improvement`."""
    means = [(_runs(first).mean(1), _runs(second).mean(1)) for first, second in pairs]
    rng = np.random.default_rng(seed)
    drawn = [_better_pairs(_draws(x, rng), _draws(y, rng)) for x, y in means]
    value = np.mean([_better_pairs(x[None], y[None])[0] for x, y in means])
    return Estimate(float(value), *interval(np.mean(drawn, axis=0)))


def _better_pairs(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """(B,) of (B, K) and (B, L): the share of pairs in which x is higher; ties count half."""
    pairs = x[:, :, None] - y[:, None, :]
    return np.asarray(((pairs > 0) + 0.5 * (pairs == 0)).mean((1, 2)))


# Figures of one policy


def performance_profile(returns: np.ndarray, thresholds: Sequence[float]) -> np.ndarray:
    """Return the share of episodes whose return is above each threshold, (T,) float64.

    Of Agarwal et al. 2021, section 4.1: where one policy's profile is above another's everywhere,
    it is better however returns are summed up.

    Raises:
        ValueError: an array is empty or has not two dimensions.
    """
    values = np.sort(_runs(returns), axis=None)
    above = len(values) - np.searchsorted(values, np.asarray(thresholds, float), side="right")
    return np.asarray(above / len(values))


def pass_hat_k(solved: np.ndarray, k: int) -> float:
    """Return the probability that k dialogues with the same goal all succeed ("pass^k").

    Of Yao et al. 2024: the unbiased estimate from n trials of a goal of which c succeed is
    C(c, k) / C(n, k), and the mean over goals is taken. With k = 1 it is the success rate.

    Args:
        solved: (G, n) bool, n trials of each of G goals.
        k: trials that must all succeed, 1 to n.

    Raises:
        ValueError: no trials, or k beyond their number.
    """
    trials = _runs(solved)
    n = trials.shape[1]
    if not 1 <= k <= n:
        raise ValueError(f"pass_hat_k: expected k from 1 to {n} trials of a goal, got {k}")
    counts = np.asarray(trials, bool).sum(1)
    return float(np.mean([comb(int(c), k) / comb(n, k) for c in counts]))


def minimum_detectable_gap(returns: np.ndarray, power: float = 0.8, level: float = LEVEL) -> float:
    """Return the least difference of two algorithms' means that as many seeds show.

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
    means = _runs(returns).mean(1)
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


def _runs(values: np.ndarray, shape: tuple[int, ...] | None = None) -> np.ndarray:
    """Check that values are (K, E), and of a given shape."""
    array = np.asarray(values)
    if array.ndim != 2 or not array.size:
        raise ValueError(f"expected a (seeds, episodes) array, got one of shape {array.shape}")
    if shape is not None and array.shape != shape:
        raise ValueError(
            f"expected the same episodes of both policies, got arrays of shape {shape} and "
            f"{array.shape}; evaluate both with the same seeds and episodes"
        )
    return array
