"""Every rule of the rewards against cases worked out by hand."""

import numpy as np
import pytest

from dialgym.tasks.visual_dialogue import SceneBook, VisualDialogue
from dialgym.tasks.visual_dialogue.scoring import (
    Cutoff,
    Scoring,
    is_conservative,
    is_hard,
    is_soft,
)

SMALL = {"name": "scenes", "scenes": 20}


class Scripted:
    """A guesser with the percentile ranks that it is told."""

    def __init__(self, *percentiles):
        self.known = percentiles

    def percentiles(self, dialogues):
        return np.array([self.known[len(held.history)] for held in dialogues])


def play(answers, percentiles, **settings):
    """Rewards of the answers, and the last outcome."""
    task = VisualDialogue(SMALL, guesser=Scripted(*percentiles), **settings)
    rng = np.random.default_rng(0)
    state, rewards = task.initial(rng), []
    for answer in answers:
        asked = task.speak(state, "is there a ball", rng)
        assert (asked.rewards["system"], asked.terminated) == (0.0, False)
        outcome = task.speak(state, answer, rng)
        assert outcome.rewards["system"] == outcome.rewards["user"]
        rewards.append(round(outcome.rewards["system"], 9))
    return rewards, outcome


RISING = (0.6, 0.7, 0.75, 0.8, 0.9)
HALF = {"cutoff": (1.0, 0.5)}


@pytest.mark.parametrize(
    ("answer", "hard", "soft", "conservative"),
    [
        ("yes", 1, 1, 1),
        ("No", 1, 1, 1),
        ("no.", 0, 1, 1),  # a full stop, and it is not just no
        ("yes, it is", 0, 1, 1),
        ("snow", 0, 1, 1),  # no is a part of it
        ("I KNOW", 0, 1, 1),
        ("yesterday", 0, 1, 1),
        ("I can't tell", 0, 0, 1),
        ("i can’t", 0, 0, 1),
        ("fairly large", 0, 0, 1),
        ("mostly just grass", 0, 0, 1),
        ("two hotels", 0, 0, 0),  # ends in els, not in ell
        ("a hotel lobby", 0, 0, 0),
        ("tellers", 0, 0, 1),
        ("maybe", 0, 0, 1),
        ("looks red", 0, 0, 1),
        ("it looked red", 0, 0, 0),
        ("red", 0, 0, 0),
        ("", 0, 0, 0),
    ],
)
def test_which_answers_are_a_yes_or_no(answer, hard, soft, conservative):
    found = is_hard(answer), is_soft(answer), is_conservative(answer)
    assert found == (bool(hard), bool(soft), bool(conservative))


def test_each_answer_costs_one_and_the_last_nothing():
    """From 0.6 half of the way to 1 is 0.8, which the third answer reaches."""
    rewards, outcome = play(["red", "two", "none"], RISING, **HALF)
    assert rewards == [-1, -1, 0]
    assert (outcome.terminated, outcome.truncated, outcome.success) == (True, False, True)
    assert outcome.components["system"] == {}


def test_a_yes_or_no_costs_two_more_the_last_one_too():
    answers = ["red", "yes", "no"]
    assert play(answers, RISING, penalty="hard", **HALF)[0] == [-1, -3, -2]
    assert play(answers, RISING, penalty="hard", yes_no=0.5, **HALF)[0] == [-1, -1.5, -0.5]
    assert play(["snow", "yes", "red"], RISING, penalty="soft", **HALF)[0] == [-3, -3, 0]
    assert play(["not red", "a", "okay"], RISING, penalty="conservative", **HALF)[0] == [-3, -1, -2]
    assert play(answers, RISING, **HALF)[0] == [-1, -1, 0]


@pytest.mark.parametrize(("reward", "last"), [("standard", -1), ("ilql", 0)])
def test_the_last_answer_of_all_is_free_in_ilql_alone(reward, last):
    """The reference's own case: [-1, -3, 0] with a yes in the middle, over by the limit."""
    rewards, outcome = play(
        ["red", "yes", "two"], (0.6, 0.6, 0.6, 0.6), reward=reward, penalty="hard", rounds=3, **HALF
    )
    assert rewards == [-1, -3, last]
    assert (outcome.terminated, outcome.success) == (True, False)
    assert outcome.components["system"] == ({"answer": -1.0} if last else {})


def test_by_default_the_image_has_to_be_found():
    task = VisualDialogue(SMALL)
    assert task.scoring.cutoff == Cutoff(1.0, 1.0)
    assert VisualDialogue(SMALL, guesser=Scripted(0)).scoring.cutoff == Cutoff(1.0, 0.5)


@pytest.mark.parametrize("reward", ["standard", "ilql"])
def test_ten_questions_are_paid_by_progress(reward):
    rewards, outcome = play(
        ["red"] * 4, (0.6, 0.7, 0.65, 0.65, 1.0), mode="10_stop", rounds=4, reward=reward, **HALF
    )
    assert rewards == [0.1, -0.05, 0, 0.35]
    assert (outcome.terminated, outcome.success) == (True, True)


def test_penalties_are_beside_progress_but_not_in_ilql():
    settings = {"mode": "10_stop", "rounds": 2, "penalty": "hard", "cost": 0.25}
    assert play(["yes", "a"], RISING, **settings)[0] == [0.1 - 0.25 - 2, 0.05 - 0.25]
    assert play(["yes", "a"], RISING, reward="ilql", **settings)[0] == [0.1 - 0.25, 0.05 - 0.25]


@pytest.mark.parametrize("text", ["<stop>", "that is all <stop>"])
def test_an_agent_that_may_stop_does(text):
    task = VisualDialogue(SMALL, guesser=Scripted(*RISING), mode="agent_stops", **HALF)
    rng = np.random.default_rng(0)
    state = task.initial(rng)
    for gain in (0.1, 0.05, 0.05):
        task.speak(state, "what is it", rng)
        assert task.speak(state, "red", rng).rewards["system"] == pytest.approx(gain)
    outcome = task.speak(state, text, rng)
    assert (outcome.rewards["system"], outcome.terminated, outcome.success) == (0.0, True, True)
    assert state.over


def test_stopping_at_once_is_no_success_and_elsewhere_it_is_a_question():
    rng = np.random.default_rng(0)
    task = VisualDialogue(SMALL, guesser=Scripted(1.0, 1.0), mode="agent_stops")
    assert task.speak(task.initial(rng), "<stop>", rng).success is False
    task = VisualDialogue(SMALL)
    assert not task.speak(task.initial(rng), "<stop>", rng).terminated


@pytest.mark.parametrize(
    ("goal", "fraction", "percentiles", "reached"),
    [
        (1.0, 0.5, (0.6,), False),  # nothing has been asked
        (1.0, 0.5, (0.6, 0.8), True),
        (1.0, 0.5, (0.6, 0.799), False),
        (1.0, 0.5, (0.9, 0.95), True),  # 0.05 / 0.1 in floats
        (1.0, 0.5, (0.6, 0.9, 0.7), False),  # what counts is the sum of the progress
        (0.9, 1.0, (0.5, 0.9), True),
        (1.0, 1.0, (0.5, 0.9995), False),
        (1.0, 0.5, (1.0, 1.0), True),  # the caption was enough
        (1.0, 0.5, (1.0, 0.9), False),
        (0.9, 0.5, (0.95, 0.93), True),  # from above the goal: not more than half of it lost
    ],
)
def test_the_cutoff(goal, fraction, percentiles, reached):
    assert Cutoff(goal, fraction).reached(percentiles) == reached


def test_bounds_hold_what_can_come():
    def bounds(**settings):
        return VisualDialogue(SMALL, **settings).facts.returns["system"]

    assert bounds() == (-10, 0)
    assert bounds(penalty="hard") == (-30, 0)
    assert bounds(penalty="hard", yes_no=-1.0) == (-10, 10)
    assert bounds(mode="10_stop") == (-1, 1)
    assert bounds(mode="agent_stops", cost=0.1, rounds=5) == (-1.5, 1)


def test_metrics_are_the_rank_and_the_share_of_bare_yes_and_no():
    task = VisualDialogue(SMALL, guesser=Scripted(*RISING), rounds=4)
    rng = np.random.default_rng(0)
    state = task.initial(rng)
    assert task.metrics(state) == {"percentile": 0.6, "yes/no answers": -1}
    for answer in ("yes", "no, red", "No", "red"):
        task.speak(state, "", rng)
        task.speak(state, answer, rng)
    assert task.metrics(state) == {"percentile": 0.9, "yes/no answers": 0.5}


def test_an_image_can_be_chosen():
    task = VisualDialogue(SMALL)
    assert task.truth(task.initial(np.random.default_rng(0), {"image": 7})) == 7


def test_scoring_can_be_made_again():
    scoring = Scoring.of(10, True, penalty="hard", cutoff=[1.0, 0.5], yes_no=2)
    assert scoring.cutoff == Cutoff(1.0, 0.5)
    assert scoring.names == ("answer", "yes/no")
    assert len(SceneBook(20)) == 20
