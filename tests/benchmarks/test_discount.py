"""Exact searches for a number beside plain recursion and the search of the task."""

from functools import cache

import numpy as np
import pytest

from benchmarks.tables.discount import solve
from dialgym.tasks.twenty_questions.search import Search

LADDER = np.tril(np.ones((6, 5), bool), -1)
"""Answers of six numbers to whether they are more than 1 to 5."""


def recursive(truth, turns, gamma, found, cost):
    """Value and codes of the first utterances that are best, with sets as they are met."""

    @cache
    def after(left, turns):
        if not left or not turns:
            return 0.0, ()
        n, values = len(left), []
        for column in truth.T:
            parts = [frozenset(i for i in left if column[i] == said) for said in (0, 1)]
            values.append(-cost + gamma * sum(len(p) / n * after(p, turns - 1)[0] for p in parts))
        for thing in range(len(truth)):
            rest, hit = left - {thing}, (thing in left) / n
            missed = -cost + gamma * after(rest, turns - 1)[0]
            values.append(hit * found + (1 - hit) * missed)
        most = max(values)
        return most, tuple(i for i, value in enumerate(values) if value > most - 1e-9)

    return after(frozenset(range(len(truth))), turns)


@pytest.mark.parametrize("gamma", [1.0, 0.9])
@pytest.mark.parametrize(("found", "cost"), [(1.0, 0.0), (0.0, 1.0)])
@pytest.mark.parametrize("turns", [2, 4, 6])
def test_it_is_what_recursion_finds(turns, gamma, found, cost):
    value, first = recursive(LADDER, turns, gamma, found, cost)
    solved = solve(LADDER, turns, gamma, found, cost)
    assert solved.value == pytest.approx(value, abs=1e-9)
    assert tuple(solved.first) == first


def test_with_costs_it_is_what_the_task_finds():
    solved = solve(LADDER, 6, 1.0, 0.0, 1.0)
    assert solved.value == pytest.approx(Search(LADDER.astype(np.int8)).value(range(6), 6))


def test_without_a_discount_time_is_no_matter():
    free, hurried = (solve(LADDER, 6, gamma, 1.0, 0.0) for gamma in (1.0, 0.99))
    assert (free.value, free.longest) == (1.0, 6.0)
    assert hurried.longest == hurried.shortest == free.shortest
