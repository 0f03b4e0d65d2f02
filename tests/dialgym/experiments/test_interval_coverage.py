"""Intervals over 3 and 5 runs hold the truth in the share of cases that they say, simulated."""

import numpy as np
import pytest

pytest.importorskip("scipy")
from dialgym.experiments.significance import mean_improvement
from dialgym.experiments.statistics import iqm, iqm_estimate, mean_estimate, seed_estimate
from tests.support.by_day import by_day

CASES = 1500
"""Simulated experiments; the standard error of a coverage of .95 is .0056."""


def coverage(estimates, truth):
    return np.mean([found.low <= truth <= found.high for found in estimates])


@pytest.mark.parametrize("runs", by_day([3, 5], 3))
@pytest.mark.parametrize(("rate", "spread"), [(0.5, 50), (0.9, 10), (0.95, 30), (0.98, 400)])
def test_of_rates(runs, rate, spread):
    """Rates of trainings are beta distributed, and 500 dialogues of each are played."""
    rng = np.random.default_rng([runs, spread])
    rates = rng.beta(rate * spread, (1 - rate) * spread, (CASES, runs))
    played = 100 * rng.binomial(500, rates) / 500
    found = [seed_estimate(values, (0.0, 100.0)) for values in played]
    assert coverage(found, 100 * rate) == pytest.approx(0.95, abs=0.02)
    known = [each for each in found if each.is_bounded]  # some runs are all alike
    assert all(0 < each.low < each.high < 100 for each in known)
    assert len(known) > 0.99 * CASES


def test_of_rates_by_a_bootstrap_of_runs_is_far_less():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(400, 3))
    drawn = values[:, rng.integers(3, size=(500, 3))].mean(-1)
    low, high = np.percentile(drawn, [2.5, 97.5], axis=1)
    assert np.mean((low <= 0) & (high >= 0)) < 0.82
    assert coverage(map(seed_estimate, values), 0.0) == pytest.approx(0.95, abs=0.03)


@pytest.mark.parametrize("runs", [3, 5])
def test_of_correlations(runs):
    rng = np.random.default_rng(runs)
    values = np.tanh(rng.normal(0.5, 0.4, (CASES, runs)))
    truth = np.tanh(rng.normal(0.5, 0.4, 10**6)).mean()
    found = [seed_estimate(each, (-1.0, 1.0)) for each in values]
    assert coverage(found, truth) == pytest.approx(0.95, abs=0.02)


@pytest.mark.parametrize("runs", [3, 5])
def test_of_means_over_environments_that_differ(runs):
    rng = np.random.default_rng(runs)
    values = rng.normal(size=(CASES, 3, runs)) * [[1.0], [3.0], [0.1]]
    found = [mean_estimate([part[:, None] for part in each]) for each in values]
    assert coverage(found, 0.0) == pytest.approx(0.95, abs=0.02)


@pytest.mark.parametrize(
    ("environments", "runs"), by_day([(1, 3), (1, 5), (3, 5), (5, 3), (5, 5)], (1, 3), (3, 5))
)
def test_of_interquartile_means(environments, runs):
    rng = np.random.default_rng([environments, runs])
    centres = np.linspace(-3, 3, environments) if environments > 1 else np.zeros(1)
    values = centres[:, None] + rng.normal(size=(CASES, environments, runs))
    truth = np.mean([iqm(each) for each in values])
    found = [iqm_estimate([*each], [range(runs)] * environments) for each in values]
    assert coverage(found, truth) == pytest.approx(0.95, abs=0.025)


@pytest.mark.parametrize(
    ("environments", "runs"), by_day([(1, 3), (1, 5), (2, 3), (5, 3), (5, 5)], (1, 3), (2, 3))
)
@pytest.mark.parametrize("gap", by_day([1.0, 2.0], 1.0))
def test_of_probabilities_of_improvement(environments, runs, gap):
    stats = pytest.importorskip("scipy.stats")
    rng = np.random.default_rng([environments, runs])
    x, y = rng.normal(size=(2, 600, environments, runs, 1))
    found = [mean_improvement(zip(a + gap, b)) for a, b in zip(x, y)]
    assert coverage(found, stats.norm.cdf(gap / 2**0.5)) > 0.92
