"""Means, intervals and comparisons, against closed forms and slow definitions."""

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dialgym.experiments.bootstrap import (
    Resampled,
    _statistics,
    bootstrap,
    interval,
    mean_difference,
)
from dialgym.experiments.significance import probability_of_improvement
from dialgym.experiments.statistics import (
    Estimate,
    environment_estimates,
    format_estimate,
    iqm,
    iqm_estimate,
    mean_estimate,
    minimum_detectable_gap,
    one_more_run,
    pass_hat_k,
    performance_profile,
    seed_estimate,
    t_interval,
    wilson,
)


@given(st.lists(st.integers(-6, 0), min_size=1, max_size=60))
def test_iqm_is_the_mean_without_the_outer_quarters(values):
    cut = int(0.25 * len(values))
    assert iqm(np.array(values)) == pytest.approx(np.mean(sorted(values)[cut : len(values) - cut]))


@given(st.lists(st.integers(0, 9), min_size=4, max_size=4).filter(any))
def test_statistics_of_counts_are_those_of_the_values(counts):
    levels = np.array([-3.0, -1.0, 0.5, 2.0])
    got = _statistics(levels, np.array([counts]))
    values = np.repeat(levels, counts)
    assert got.mean[0] == pytest.approx(values.mean())
    assert got.iqm[0] == pytest.approx(iqm(values))


def test_interval_of_a_proportion_is_the_binomial_one():
    values = np.repeat([0.0, 1.0], [300, 700])[None]
    low, high = interval(bootstrap(values, 20_000).mean)
    half = 1.96 * np.sqrt(0.3 * 0.7 / 1000)
    assert low == pytest.approx(0.7 - half, abs=0.002)
    assert high == pytest.approx(0.7 + half, abs=0.002)


def test_strata_are_resampled_by_themselves():
    values = np.repeat([[0.0], [1.0]], 50, axis=1)
    assert interval(bootstrap(values).mean) == (0.5, 0.5)
    assert interval(bootstrap(values.reshape(1, -1)).mean)[0] < 0.45


def test_bootstrap_is_reproducible_in_chunks_and_fits_its_memory(monkeypatch):
    values = np.random.default_rng(0).normal(size=(2, 30))
    whole = bootstrap(values, 500)
    monkeypatch.setattr("dialgym.experiments.bootstrap.CELLS", 60 * 7)
    chunked = bootstrap(values, 500)
    assert isinstance(chunked, Resampled)
    assert chunked.mean.shape == (500,)
    assert interval(chunked.mean) == pytest.approx(interval(whole.mean), abs=0.08)
    assert (bootstrap(values, 500).mean == chunked.mean).all()


def test_intervals_over_environments_and_seeds():
    values = np.random.default_rng(0).normal(80, 2, (18, 5))
    found = environment_estimates(values)
    for estimate in found:
        assert estimate.low < estimate.value < estimate.high
        assert 78 < estimate.low < estimate.high < 82
    one = seed_estimate(np.array([3.0]))
    assert (one.value, one.low, one.high) == (3.0, -np.inf, np.inf)


def test_an_interval_of_students_t():
    low, high = t_interval(np.array([1.0, 2.0, 3.0, 4.0, 5.0]))
    half = 2.7764451 * np.sqrt(2.5 / 5)  # the 97.5 % quantile with 4 degrees of freedom
    assert (low, high) == pytest.approx((3 - half, 3 + half))
    assert t_interval(np.array([1.0])) == (-np.inf, np.inf)


def test_a_single_seed_has_no_interval():
    found = environment_estimates(np.array([[90.0], [80.0]]))
    assert found.mean == (85.0, -np.inf, np.inf)
    assert found.iqm.low == -np.inf


def test_a_single_run_varies_by_its_episodes_and_a_bare_mean_not_at_all():
    values = np.random.default_rng(0).normal(size=(1, 400))
    found = mean_estimate([values])
    half = 1.9659 * values.std(ddof=1) / np.sqrt(400)
    assert found.interval == pytest.approx((values.mean() - half, values.mean() + half), abs=1e-4)
    assert not mean_estimate([np.array([[3.0]])]).is_bounded


def test_one_more_run_lies_in_the_interval_as_often_as_it_says():
    rng = np.random.default_rng(0)
    runs = rng.normal(3.0, 2.0, (4000, 6))
    found = [one_more_run(row[:5, None]) for row in runs]
    held = [one.low <= value <= one.high for one, value in zip(found, runs[:, 5])]
    assert 0.94 < np.mean(held) < 0.96
    alike = np.array([[0.0, 2.0], [2.0, 0.0], [0.0, 2.0]])
    assert one_more_run(alike).high == pytest.approx(1 + 2.570582 * 0.8**0.5)
    assert one_more_run(alike[:1]).low < -10
    always = one_more_run(np.full((3, 500), 100.0), (0.0, 100.0))
    assert always.interval == pytest.approx((100 * wilson(1.0, 500).low, 100.0))


def test_the_mean_over_environments_varies_as_each_of_them():
    # Variances of means 1 and 4 / 3 of 3 and 3 runs: (7 / 3)^2 / (1 / 2 + 16 / 18) degrees.
    parts = [np.array([[0.0], [3.0], [3.0]]), np.array([[1.0], [3.0], [5.0]])]
    stats = pytest.importorskip("scipy.stats")
    half = stats.t.ppf(0.975, (7 / 3) ** 2 / (1 / 2 + 16 / 18)) * np.sqrt(7 / 3) / 2
    assert mean_estimate(parts).interval == pytest.approx((2.5 - half, 2.5 + half))


def test_a_bounded_figure_has_an_interval_within_its_bounds():
    values = np.array([-0.1, 0.4, 0.6])
    plain, bounded = seed_estimate(values), seed_estimate(values, (-1.0, 1.0))
    assert plain.high > 1
    assert -1 < bounded.low < bounded.value < bounded.high < 1
    spread = (plain.high - plain.value) / (1 - 0.3**2)  # of Fisher's z, by the delta method
    fisher = np.tanh(np.arctanh(0.3) + np.array([-spread, spread]))
    assert bounded.interval == pytest.approx(tuple(fisher))
    scaled = seed_estimate(50 + 50 * values, (0.0, 100.0))
    assert scaled.interval == pytest.approx(tuple(50 + 50 * fisher))


def test_what_cannot_be_negative_has_an_interval_above_nothing():
    plain, bounded = (seed_estimate(np.array([1.0, 9.0]), b) for b in (None, (0.0, np.inf)))
    assert plain.low < 0
    spread = (plain.high - 5) / 5  # of the logarithm, by the delta method
    assert bounded.interval == pytest.approx((5 * np.exp(-spread), 5 * np.exp(spread)))
    assert not seed_estimate(np.full(3, 7.0), (0.0, np.inf)).is_bounded


def test_a_rate_that_is_the_same_in_all_runs_varies_by_its_episodes():
    whole = mean_estimate([np.full((3, 500), 100.0)], (0.0, 100.0))
    assert whole == pytest.approx(tuple(100 * each for each in wilson(1.0, 1500)))
    assert not seed_estimate(np.full(3, 0.1), (0.0, 1.0)).is_bounded
    assert seed_estimate(np.full(3, 0.25)).interval == (0.25, 0.25)


def test_the_interquartile_mean_varies_as_its_jackknife():
    rng = np.random.default_rng(0)
    parts = [rng.normal(m, 1, 5) for m in (0, 4, 8)]
    left = [iqm(np.concatenate([np.delete(part, k) for part in parts])) for k in range(5)]
    half = 2.7764451 * np.sqrt(4 / 5 * np.sum((left - np.mean(left)) ** 2))
    found = iqm_estimate(parts, [range(5)] * 3)
    assert found.value == iqm(np.concatenate(parts))
    assert found.interval == pytest.approx((found.value - half, found.value + half))
    assert not iqm_estimate([part[:1] for part in parts], [[0]] * 3).is_bounded
    three = np.array([1.0, 2.0, 4.0])  # of three runs the middle half is all
    assert iqm_estimate([three], [range(3)]).interval == pytest.approx(t_interval(three))


@pytest.mark.parametrize(
    ("estimate", "how", "text"),
    [
        (None, {}, "-"),
        (Estimate(-2.614, -2.7, -2.567), {}, "-2.6 [-2.7, -2.6]"),
        (Estimate(3.1, 1, 5.2), {"signed": True}, "+3.1 [1.0, 5.2]"),
        (Estimate(3.1, -np.inf, np.inf), {}, "3.1"),
        (Estimate(3.1, np.nan, np.nan), {}, "3.1"),
    ],
)
def test_estimates_as_text(estimate, how, text):
    assert format_estimate(estimate, 1, **how) == text


# Comparisons


def test_what_is_common_to_both_does_not_widen_the_interval():
    rng = np.random.default_rng(0)
    hard = rng.normal(0, 10, (3, 200))  # episodes differ far more than policies
    first, second = hard + 1 + rng.normal(0, 0.1, hard.shape), hard
    found = mean_difference(first, second)
    low, high = found.interval
    assert low < found.value < high
    assert 0.9 < low < 1 < high < 1.1


def test_the_interval_of_a_difference_holds_the_truth_as_often_as_it_says():
    rng = np.random.default_rng(1)
    hits = 0
    for i in range(100):
        first, second = rng.normal(0.3, 1, (2, 40)), rng.normal(0, 1, (2, 40))
        low, high = mean_difference(first, second, seed=i).interval
        hits += low <= 0.3 <= high
    assert 88 <= hits <= 99


@given(
    st.lists(st.integers(-3, 3), min_size=1, max_size=6),
    st.lists(st.integers(-3, 3), min_size=1, max_size=6),
)
@settings(max_examples=30)
def test_the_probability_of_improvement_counts_pairs(x, y):
    first, second = (np.array(values, float)[:, None] for values in (x, y))
    expected = np.mean([(a > b) + 0.5 * (a == b) for a, b in product(x, y)])
    found = probability_of_improvement(first, second)
    assert found.value == pytest.approx(expected)
    assert found.low <= found.high
    back = probability_of_improvement(second, first)
    assert back.value == pytest.approx(1 - found.value)


def test_runs_that_are_alike_are_a_tie_and_others_are_not():
    rng = np.random.default_rng(0)
    alike = rng.normal(0, 1, (2, 8, 50))
    low, high = probability_of_improvement(*alike).interval
    assert low < 0.5 < high
    better = probability_of_improvement(alike[0] + 9, alike[1])
    assert (better.value, better.high) == (1.0, 1.0)
    assert 0.5 < better.low < 0.9  # eight runs of each do not tell that all are better


@given(st.lists(st.integers(-5, 5), min_size=1, max_size=20), st.integers(-6, 6))
def test_a_profile_is_the_share_above(values, threshold):
    expected = np.mean([value > threshold for value in values])
    assert performance_profile(np.array([values]), [threshold])[0] == pytest.approx(expected)


@given(st.lists(st.lists(st.booleans(), min_size=4, max_size=4), min_size=1, max_size=5))
def test_all_of_k_trials_are_counted_by_every_choice_of_them(trials):
    for k in range(1, 5):
        expected = np.mean([all(c) for goal in trials for c in combinations(goal, k)])
        assert pass_hat_k(np.array(trials), k) == pytest.approx(expected)


def test_gaps_of_this_size_are_found_as_often_as_it_says():
    rng = np.random.default_rng(0)
    scipy = pytest.importorskip("scipy.stats")
    gap = np.mean([minimum_detectable_gap(rng.normal(0, 1, (5, 1))) for _ in range(400)])
    found = 0
    for _ in range(400):
        first, second = rng.normal(0, 1, 5), rng.normal(gap / 0.94, 1, 5)
        found += scipy.ttest_ind(first, second).pvalue < 0.05  # 0.94: the mean of s of 5 draws
    assert 0.74 < found / 400 < 0.88
    assert minimum_detectable_gap(np.arange(20.0).reshape(10, 2)) < minimum_detectable_gap(
        np.arange(20.0).reshape(10, 2)[[0, 5, 9]]
    )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: mean_difference(np.zeros((2, 3)), np.zeros((2, 4))), "the same episodes of both"),
        (lambda: mean_difference(np.zeros(3), np.zeros(3)), r"\(seeds, episodes\) array"),
        (lambda: pass_hat_k(np.ones((2, 3)), 4), "k from 1 to 3 trials of a goal, got 4"),
        (lambda: performance_profile(np.zeros((0, 3)), [0]), r"\(seeds, episodes\) array"),
        (lambda: minimum_detectable_gap(np.zeros((1, 9))), "2 seeds or more, got 1"),
        (lambda: minimum_detectable_gap(np.zeros((3, 9)), power=1), "between 0 and 1"),
    ],
)
def test_bad_input_is_one_clear_error(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize(
    ("share", "n", "low", "high"),
    [(0.0, 10, 0.0, 0.2775), (1.0, 10, 0.7225, 1.0), (0.5, 100, 0.4038, 0.5962)],
)
def test_wilsons_interval(share, n, low, high):
    found = wilson(share, n)
    assert found.value == share
    assert (found.low, found.high) == pytest.approx((low, high), abs=5e-5)
    assert found.low <= share <= found.high
