"""Bootstrap intervals over the dialogues of a policy, in NumPy.

Dialogues are many; over trainings, which are few, intervals are Student's t (`statistics`). Values
are (K, E): K seeds of E dialogues each, the same for every policy.
"""

from typing import NamedTuple

import numpy as np

from dialgym.experiments.statistics import LEVEL, Estimate, Interval, runs_of

RESAMPLES = 2000
CELLS = 2**22  # counts held in memory at once


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


def _draws(values: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Resamples (B, n) of (n,) values."""
    return np.asarray(values[rng.integers(len(values), size=(RESAMPLES, len(values)))])


def interval(samples: np.ndarray, level: float = LEVEL) -> Interval:
    """Return the central interval that holds `level` of the (B,) samples."""
    tail = 100 * (1 - level) / 2
    low, high = np.percentile(samples, [tail, 100 - tail])
    return float(low), float(high)


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
    differences = runs_of(first) - runs_of(second, np.shape(first))
    rng = np.random.default_rng(seed)
    means = [_draws(row, rng).mean(-1) for row in differences]
    return Estimate(float(differences.mean()), *interval(np.mean(means, axis=0)))
