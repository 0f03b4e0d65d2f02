"""Means, interquartile means and bootstrap intervals, in NumPy alone."""

from typing import NamedTuple

import numpy as np

RESAMPLES = 2000
CELLS = 2**22  # counts held in memory at once


class Resampled(NamedTuple):
    """Statistics of each bootstrap resample, both (B,) float64."""

    mean: np.ndarray
    iqm: np.ndarray


def iqm(values: np.ndarray) -> float:
    """The interquartile mean: that of what is left without the lowest and highest quarter.

    `int(n / 4)` values are cut from each end, as in ``scipy.stats.trim_mean(values, 0.25)``.
    """
    ordered = np.sort(values, axis=None)
    cut = len(ordered) // 4
    return float(ordered[cut : len(ordered) - cut].mean())


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


def interval(samples: np.ndarray, level: float = 0.95) -> tuple[float, float]:
    """The central interval that holds `level` of the (B,) samples."""
    tail = 100 * (1 - level) / 2
    low, high = np.percentile(samples, [tail, 100 - tail])
    return float(low), float(high)


def _counts(inverse: np.ndarray, size: int, resamples: int, rng: np.random.Generator) -> np.ndarray:
    """How often each level comes up in each resample of all strata, (B, U) int64."""
    counts = np.zeros((resamples, size), np.int64)
    for stratum in inverse:
        shares = np.bincount(stratum, minlength=size) / len(stratum)
        counts += rng.multinomial(len(stratum), shares, resamples)
    return counts


def _statistics(levels: np.ndarray, counts: np.ndarray) -> Resampled:
    n = int(counts[0].sum())
    cut = n // 4
    upto = np.cumsum(counts, 1)  # (B, U)
    kept = np.diff(np.clip(upto, cut, n - cut), axis=1, prepend=cut)
    return Resampled(counts @ levels / n, kept @ levels / (n - 2 * cut))
