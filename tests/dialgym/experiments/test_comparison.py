"""What can be concluded from the returns of several policies."""

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dialgym.experiments.comparison import (
    mean_difference,
    minimum_detectable_gap,
    pass_hat_k,
    performance_profile,
    probability_of_improvement,
)


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
    assert found.interval[0] <= found.interval[1]
    back = probability_of_improvement(second, first)
    assert back.value == pytest.approx(1 - found.value)


def test_runs_that_are_alike_are_a_tie_and_others_are_not():
    rng = np.random.default_rng(0)
    alike = rng.normal(0, 1, (2, 8, 50))
    low, high = probability_of_improvement(*alike).interval
    assert low < 0.5 < high
    assert probability_of_improvement(alike[0] + 9, alike[1]) == (1.0, (1.0, 1.0))


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
