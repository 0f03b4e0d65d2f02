"""Questioners: the optimum against a search without bounds, and skill in order."""

from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from dialgym.tasks.twenty_questions import TwentyQuestions
from dialgym.tasks.twenty_questions.policies import (
    GreedyQuestioner,
    GuessingQuestioner,
    HumanLikeQuestioner,
    OptimalQuestioner,
    QuestionMixture,
    RandomQuestioner,
)
from dialgym.tasks.twenty_questions.search import Search, perfect
from tests.support.question_games import begun, play, say, table_file

SMALL: list[dict[str, Any]] = [
    {"items": 8, "questions": 8},
    {"items": 16, "questions": 12},
    {"items": 24, "questions": 16},
    {"table": "cities", "items": 32, "questions": 20},
    {"table": "animals"},
]


def exhaustive(truth: np.ndarray, turns: int) -> float:
    """The best expected return, all choices tried in all sets."""

    @cache
    def value(left: frozenset[int], turns: int) -> float:
        if turns == 0 or len(left) == 0:
            return 0.0
        n, found = len(left), []
        for thing in left:
            found.append((n - 1) / n * (value(left - {thing}, turns - 1) - 1))
        for column in truth.T:
            parts = [frozenset(i for i in left if column[i] == told) for told in range(3)]
            found.append(sum(len(p) / n * value(p, turns - 1) for p in parts) - 1)
        return max(found)

    return value(frozenset(range(len(truth))), turns)


@settings(max_examples=40)
@given(arrays(np.int8, (6, 4), elements=st.integers(0, 2)), st.integers(0, 7))
def test_the_search_finds_the_best(truth: np.ndarray, turns: int) -> None:
    assert Search(truth).value(range(6), turns) == pytest.approx(exhaustive(truth, turns))


def test_the_best_by_hand() -> None:
    """With n things left and perfect questions: guess, guess, guess; with four halve first."""
    assert [perfect(n, 20) for n in (1, 2, 3, 4)] == [0.0, -0.5, -1.0, -1.5]
    assert perfect(8, 20) == pytest.approx(-2.5)
    assert perfect(4, 1) == pytest.approx(-0.75)
    assert perfect(4, 0) == 0.0


@given(arrays(np.int8, (7, 5), elements=st.integers(0, 1)), st.integers(1, 8))
def test_no_table_allows_more_than_perfect_questions(truth: np.ndarray, turns: int) -> None:
    assert Search(truth).value(range(7), turns) <= perfect(7, turns) + 1e-9


def greedy_value(task: TwentyQuestions) -> float:
    """The exact expected return of `GreedyQuestioner`, over its ties too."""

    @cache
    def value(left: frozenset[int], turns: int) -> float:
        if turns == 0 or not left:
            return 0.0
        belief = np.isin(np.arange(task.things), list(left)) / len(left)
        codes = tied(task, belief, task.turns - turns)
        return float(np.mean([expected(left, turns, code) for code in codes]))

    def expected(left: frozenset[int], turns: int, code: int) -> float:
        if code >= task.questions:
            rest = left - {code - task.questions}
            return len(rest) / len(left) * (value(rest, turns - 1) - 1)
        column = task.table.truth[:, code]
        parts = [frozenset(i for i in left if column[i] == told) for told in range(3)]
        return sum(len(part) / len(left) * value(part, turns - 1) for part in parts) - 1

    return value(frozenset(range(task.things)), task.turns)


def tied(task: TwentyQuestions, belief: np.ndarray, turns: int) -> Sequence[int]:
    """The codes that `GreedyQuestioner` draws from: most information, guesses first."""
    if turns == task.turns - 1:
        return (task.questions + np.flatnonzero(belief == belief.max())).tolist()
    gains = task.beliefs.gains(belief)
    best = np.flatnonzero(gains >= gains.max() - 1e-9)
    if gains.max() < 1e-9:
        return [task.questions + int(belief.argmax())]
    guesses = best[best >= task.questions]
    return (guesses if len(guesses) else best).tolist()


@pytest.mark.parametrize("kwargs", SMALL, ids=str)
def test_greedy_is_within_five_percent_of_the_optimum(kwargs: dict[str, Any]) -> None:
    task = TwentyQuestions(**kwargs)
    best = OptimalQuestioner().search(task).value(range(task.things), task.turns)
    greedy = greedy_value(task)
    assert 1.05 * best <= greedy <= best + 1e-9


def test_greedy_plays_what_its_exact_value_says() -> None:
    task = TwentyQuestions(items=8, questions=8)
    names = [names[0] for names in task.table.names]
    returns = [
        sum(play(task, GreedyQuestioner(), {"item": n}, s)) for s in range(60) for n in names
    ]
    assert abs(np.mean(returns) - greedy_value(task)) < 0.15


@pytest.mark.parametrize("kwargs", SMALL[:2], ids=str)
def test_optimal_plays_what_the_search_promises(kwargs: dict[str, Any]) -> None:
    task, policy = TwentyQuestions(**kwargs), OptimalQuestioner()
    returns = [sum(play(task, policy, {"item": names[0]})) for names in task.table.names]
    assert np.mean(returns) == pytest.approx(policy.search(task).value(range(task.things), 20))


@pytest.mark.parametrize(
    ("settings", "policy", "message"),
    [
        ({"items": 8, "questions": 8, "noise": 0.1}, OptimalQuestioner,
         r"optimal: expected a TwentyQuestions with noise=0"),
        ({"items": 24, "questions": 16}, lambda: OptimalQuestioner(sets=10),
         r"more than 10 sets of things.*fewer items or questions"),
        ({}, lambda: HumanLikeQuestioner(temperature=0),
         "temperature of human-like must be above 0; got 0"),
    ],
)  # fmt: skip
def test_policies_that_do_not_fit_say_so(
    settings: dict[str, Any], policy: Any, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        play(TwentyQuestions(**settings), policy())


def test_things_that_no_question_tells_apart_are_guessed_in_turn(tmp_path: Path) -> None:
    truth = np.array([[0], [0], [0], [1]], np.int8)
    task = TwentyQuestions(table=table_file(tmp_path, truth))
    for policy in (GreedyQuestioner(), OptimalQuestioner()):
        returns = [sum(play(task, policy, {"item": names[0]})) for names in task.table.names]
        assert np.mean(returns) == pytest.approx(exhaustive(truth, 20))


def test_greedy_guesses_with_its_last_turn() -> None:
    task = TwentyQuestions(turns=1)
    state = begun(task, "guitar")
    assert GreedyQuestioner().act(task, state, np.random.default_rng(0)) >= task.questions


def mean(policy: Any, task: TwentyQuestions, episodes: int = 80) -> float:
    return float(np.mean([sum(play(task, policy, seed=seed)) for seed in range(episodes)]))


def test_skill_is_graded() -> None:
    task = TwentyQuestions(table="cities")
    order = [RandomQuestioner(), QuestionMixture(), HumanLikeQuestioner(), GreedyQuestioner()]
    returns = [mean(policy, task) for policy in order]
    assert all(worse + 1.0 < better for worse, better in pairwise(returns))
    cooler, warmer = (
        HumanLikeQuestioner(temperature=0.02, early=0.0),
        HumanLikeQuestioner(temperature=1.0),
    )
    assert mean(cooler, task) > mean(warmer, task) + 1.0
    assert mean(GuessingQuestioner(), task) < mean(QuestionMixture(), task)


@pytest.mark.parametrize("name", TwentyQuestions.speakers["system"])
def test_questioners_do_not_look_at_the_thing(name: str) -> None:
    task = TwentyQuestions(items=16, questions=12)
    state = begun(task, task.table.names[2][0])
    say(task, state, [task.said[1], task.said[7]])
    other = state.copy()
    other.item, other.opening = 9, task.opening(9)
    policy = task.speaker_named("system", name)
    for seed in range(5):
        first = policy.reply(task, state, np.random.default_rng(seed))
        assert first == policy.reply(task, other, np.random.default_rng(seed))


def test_human_wordings_vary_and_are_understood() -> None:
    task, policy = TwentyQuestions(), HumanLikeQuestioner()
    state, said = begun(task, "guitar"), set()
    for seed in range(300):
        text = policy.reply(task, state, np.random.default_rng(seed))
        assert task.understanding.read(text) == (
            policy.act(task, state, np.random.default_rng(seed)), False,
        )  # fmt: skip
        said.add(text)
    assert len(said - set(task.said)) > 10
