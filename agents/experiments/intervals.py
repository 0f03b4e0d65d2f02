"""Means over seeds and tasks, with 95 % intervals."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import stats

from dialgym.experiments.statistics import bootstrap, interval, iqm

LEVEL = 0.95


class Estimate(NamedTuple):
    """A figure and its interval."""

    value: float
    low: float
    high: float


class Overall(NamedTuple):
    """Over several tasks, each with several seeds."""

    mean: Estimate
    iqm: Estimate


def t_interval(means: np.ndarray, level: float = LEVEL) -> tuple[float, float]:
    """Confidence interval of the mean of S numbers (Student's t); infinite for a single one."""
    if len(means) < 2:
        return -np.inf, np.inf
    half = stats.t.ppf((1 + level) / 2, len(means) - 1) * stats.sem(means)
    return float(means.mean() - half), float(means.mean() + half)


def over_seeds(values: np.ndarray) -> Estimate:
    """The mean of (S,) seeds."""
    return Estimate(float(values.mean()), *t_interval(values))


def over_tasks(values: np.ndarray) -> Overall:
    """Mean and interquartile mean of (K, S) values of K tasks and S seeds.

    Intervals are of bootstrap resamples in which each task's seeds are drawn by themselves
    (Agarwal et al. 2021, arXiv 2108.13264); infinite for a single seed.
    """
    if values.shape[1] < 2:
        nothing = -np.inf, np.inf
        return Overall(Estimate(float(values.mean()), *nothing), Estimate(iqm(values), *nothing))
    drawn = bootstrap(values)
    mean = Estimate(float(values.mean()), *interval(drawn.mean, LEVEL))
    return Overall(mean, Estimate(iqm(values), *interval(drawn.iqm, LEVEL)))
