"""Beliefs against Bayes' rule written out, and information against its definition."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from dialgym.tasks import entropy, information_gain
from dialgym.tasks.twenty_questions import TwentyQuestions
from dialgym.tasks.twenty_questions.belief import Beliefs, normalised
from dialgym.tasks.twenty_questions.policies import HumanLikeQuestioner, TableAnswerer
from dialgym.tasks.twenty_questions.types import NO, NOTHING, UNCLEAR, YES
from tests.support.question_games import begun, play, say

THINGS, QUESTIONS = 5, 4
TRUTHS = arrays(np.int8, (THINGS, QUESTIONS), elements=st.integers(0, 2))
RATES = st.sampled_from([0.0, 0.1, 0.3])


def chance(
    truth: np.ndarray, noise: float, vague: float, thing: int, code: int, told: int
) -> float:
    """P(answer | thing), case by case."""
    if code == NOTHING:
        return float(told == UNCLEAR)
    if code >= QUESTIONS:
        return float(told == (YES if code - QUESTIONS == thing else NO))
    if truth[thing, code] == UNCLEAR:
        return float(told == UNCLEAR)
    if told == UNCLEAR:
        return vague
    return (1 - vague) * (1 - noise if told == truth[thing, code] else noise)


@given(TRUTHS, RATES, RATES, st.data())
def test_the_posterior_is_bayes_rule(
    truth: np.ndarray, noise: float, vague: float, data: st.DataObject
) -> None:
    beliefs = Beliefs(truth, noise, vague)
    codes = data.draw(st.lists(st.integers(NOTHING, QUESTIONS + THINGS - 1), max_size=6))
    hidden = data.draw(st.integers(0, THINGS - 1))
    answers = []
    for code in codes:
        options = [a for a in (NO, YES, UNCLEAR) if chance(truth, noise, vague, hidden, code, a)]
        answers.append(data.draw(st.sampled_from(options)))
    expected = np.array(
        [
            np.prod([chance(truth, noise, vague, k, c, a) for c, a in zip(codes, answers)])
            for k in range(THINGS)
        ]
    )
    found = beliefs.weigh_all(beliefs.start(), codes, answers)
    np.testing.assert_allclose(normalised(found), expected / expected.sum(), atol=1e-12)
    weights = beliefs.start()[None]
    for code, told in zip(codes, answers):
        weights = beliefs.weigh(weights, np.array([code]), np.array([told]))
    np.testing.assert_array_equal(weights[0], found)


@given(TRUTHS, RATES, RATES, arrays(float, THINGS, elements=st.floats(0.01, 1.0)))
def test_gains_are_those_of_the_likelihoods(
    truth: np.ndarray, noise: float, vague: float, weights: np.ndarray
) -> None:
    beliefs, p = Beliefs(truth, noise, vague), weights / weights.sum()
    likelihoods = np.array([beliefs.likelihoods(code) for code in range(QUESTIONS + THINGS)])
    np.testing.assert_allclose(likelihoods.sum(-1), 1.0)
    cases = product(range(QUESTIONS + THINGS), range(THINGS), (NO, YES, UNCLEAR))
    for code, thing, told in cases:
        by_hand = chance(truth, noise, vague, thing, code, told)
        assert likelihoods[code, thing, told] == pytest.approx(by_hand)
    np.testing.assert_allclose(beliefs.gains(p), information_gain(p, likelihoods), atol=1e-9)
    both = beliefs.gains(np.stack([p, p[::-1]]))
    np.testing.assert_allclose(both[0], beliefs.gains(p), atol=1e-12)


def test_true_answers_tell_the_entropy_of_their_split() -> None:
    task = TwentyQuestions(items=8, questions=8)
    state = begun(task, task.table.names[0][0])
    shares = task.table.truth.mean(0)
    told = [entropy(np.array([share, 1 - share])) for share in shares]
    np.testing.assert_allclose(task.gains(state), [*told, *[entropy(np.array([1, 7]) / 8)] * 8])
    say(task, state, [task.said[0]])
    same = task.table.truth[:, 0] == task.table.truth[0, 0]
    np.testing.assert_allclose(task.posterior(state), same / same.sum())
    assert task.gains(state)[0] == 0.0


def test_a_noisy_answer_shifts_the_odds_by_its_likelihood_ratio() -> None:
    task = TwentyQuestions(items=8, questions=8, noise=0.2)
    state = begun(task, task.table.names[0][0])
    rng = np.random.default_rng(0)
    task.speak(state, task.said[0], rng)
    task.speak(state, "yes", rng)
    p, true = task.posterior(state), task.table.truth[:, 0] == YES
    assert p[true].max() / p[~true].max() == pytest.approx(0.8 / 0.2)


def test_answers_that_contradict_each_other_leave_a_belief() -> None:
    task = TwentyQuestions(items=8, questions=8)
    state, rng = begun(task, task.table.names[0][0]), np.random.default_rng(0)
    for text in ("yes", "no", "no"):
        task.speak(state, task.said[0], rng)
        task.speak(state, text, rng)
    p = task.posterior(state)
    assert p.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(p[task.table.truth[:, 0] == YES], 0.0, atol=1e-6)


def test_the_posterior_is_calibrated_under_noise() -> None:
    """The truth gets on average what the belief gives to a thing drawn from itself."""
    task = TwentyQuestions(table="animals", noise=0.15, vague=0.1, turns=8)
    rng, policy, answerer = np.random.default_rng(0), HumanLikeQuestioner(), TableAnswerer()
    gaps = []
    for _ in range(400):
        state = task.initial(rng)
        while not state.over:
            task.speak(state, policy.reply(task, state, rng), rng)
            task.speak(state, answerer.reply(task, state, rng), rng)
        p = task.posterior(state)
        gaps.append(p[state.item] - (p**2).sum())
    error = float(np.std(gaps)) / len(gaps) ** 0.5
    assert abs(np.mean(gaps)) < 4 * error


def test_the_belief_knows_nothing_but_the_transcript() -> None:
    task = TwentyQuestions(items=16, questions=12)
    state = begun(task, task.table.names[3][0])
    say(task, state, [task.said[0], task.said[5], task.table.guesses[1]])
    other = state.copy()
    other.item = 7
    np.testing.assert_array_equal(task.posterior(state), task.posterior(other))


def test_a_won_dialogue_leaves_no_doubt() -> None:
    task = TwentyQuestions(items=16, questions=12, noise=0.2)
    state = begun(task, task.table.names[3][0])
    say(task, state, [task.said[0], task.table.guesses[3]])
    assert state.over
    assert task.posterior(state)[3] == 1.0
    assert task.metrics(state)["information"] == 1.0
    assert len(play(task, HumanLikeQuestioner())) <= 20
