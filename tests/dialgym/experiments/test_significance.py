"""Welch's t test and Holm's correction, against closed forms and slow definitions."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from dialgym.experiments.significance import ALPHA, holm, welch_difference, welch_p_value


def test_holm_of_an_example_worked_by_hand():
    # 4 * .005 = .02; 3 * .01 = .03; 2 * .03 = .06; 1 * .04 is less, so .06 stays.
    got = holm([0.01, 0.04, 0.03, 0.005])
    np.testing.assert_allclose(got, [0.03, 0.06, 0.06, 0.02])
    assert holm([]).shape == (0,)
    np.testing.assert_allclose(holm([0.4, 0.6]), [0.8, 0.8])  # never less than an earlier step's


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_rejects_what_its_step_down_procedure_rejects(p_values):
    rejected = set()
    ranked = sorted(range(len(p_values)), key=p_values.__getitem__)
    for done, i in enumerate(ranked):
        if (len(p_values) - done) * p_values[i] > ALPHA:
            break
        rejected.add(i)
    assert set(np.flatnonzero(holm(p_values) <= ALPHA)) == rejected


def test_holm_holds_its_family_wise_error_rate_where_nothing_differs():
    rng = np.random.default_rng(0)
    families = rng.random((4000, 18))
    wrong = np.mean([(holm(family) <= ALPHA).any() for family in families])
    alone = np.mean((families <= ALPHA).any(1))
    assert wrong == pytest.approx(0.05, abs=0.015)
    assert alone > 0.5


@pytest.mark.parametrize("values", [[0.1, -0.1], [1.1], [float("nan")], [[0.1]]])
def test_holm_takes_probabilities_alone(values):
    with pytest.raises(ValueError, match="holm: expected p-values from 0 to 1, got"):
        holm(values)


def test_welch_of_an_example_worked_by_hand():
    # Means 2 and 5, variances of means 1/3 and 1/3: t = 3 / sqrt(2 / 3), with 4 degrees of freedom.
    got = welch_p_value(np.array([1.0, 2.0, 3.0]), np.array([4.0, 5.0, 6.0]))
    t = 3 / np.sqrt(2 / 3)
    s = t / np.sqrt(t**2 + 4)  # distribution of Student's t with 4 degrees of freedom
    assert got == pytest.approx(2 * (0.5 - (3 * s - s**3) / 4))


@given(*[st.lists(st.integers(0, 500), min_size=2, max_size=5)] * 2)
def test_welch_is_scipys(first, second):
    if np.ptp(first) and np.ptp(second):
        wanted = stats.ttest_ind(first, second, equal_var=False).pvalue
        assert welch_p_value(np.array(first), np.array(second)) == pytest.approx(wanted)


@pytest.mark.parametrize(
    ("first", "second", "p"),
    [
        ([100, 100, 100], [100, 100, 100], 1.0),
        ([100, 100, 100], [99, 99, 99], 1.0),
        ([70.0, 70.0, 70.0], [70.0, 70.0, 70.0 + 1e-13], 1.0),
        ([70.0, 70.0, 70.0], [60.0, 60.0, 60.0 + 1e-13], 1.0),
        ([100.0], [1.0, 2.0], 1.0),
        ([1.0, 3.0], [2.0, 2.0], 1.0),
    ],
)
def test_welch_where_little_varies(first, second, p):
    assert welch_p_value(np.array(first), np.array(second)) == p


@pytest.mark.parametrize("paired", [True, False])
def test_rates_that_hardly_differ_are_not_told_apart(paired):
    """Three failures of 1,500 against none: McNemar's exact test has p = .25."""
    none, some = np.full((3, 500), 100.0), np.full((3, 500), 100.0)
    some[:, 0] = 0.0
    found = welch_difference([(none, some, paired)], (0.0, 100.0))
    assert found.p_value > 0.1
    assert found.estimate.low < 0 < found.estimate.high
    some[:, :100] = 0.0
    assert welch_difference([(none, some, paired)], (0.0, 100.0)).p_value < 0.01


def test_families_of_equal_rates_near_the_bound_hold_their_error_rate():
    """By the variances of three runs alone, one family in five had a difference."""
    rng = np.random.default_rng(0)
    wrong = []
    for played in 100.0 * (rng.random((40, 8, 3, 200)) < 0.99):
        pairs = [[(a, b, True)] for a, b in combinations(played, 2)]
        found = [welch_difference(pair, (0.0, 100.0)).p_value for pair in pairs]
        wrong.append((holm(found) <= ALPHA).any())
    assert np.mean(wrong) <= 0.05
