"""Rewards, ends and answers, by hand; noise and vagueness at the rates that are asked for."""

from typing import Any

import numpy as np
import pytest

import dialgym
from dialgym.tasks import ExactPosterior
from dialgym.tasks.twenty_questions import TwentyQuestions
from dialgym.tasks.twenty_questions.policies import RandomQuestioner
from dialgym.tasks.twenty_questions.types import NO, UNCLEAR, YES
from tests.support.question_games import begun, play, say

TASK = TwentyQuestions()


@pytest.mark.parametrize(
    ("texts", "heard"),
    [
        (["is it alive?", "does it have strings?", "is it a violin?", "is it a guitar?"],
         [("no", -1.0, False), ("yes", -1.0, False), ("no", -1.0, False), ("yes", 0.0, True)]),
        (["is it a piano?"] * 20, [("no", -1.0, False)] * 19 + [("no", -1.0, True)]),
    ],
    ids=["each question costs one but the right guess", "minus twenty at most, as in LMRL-Gym"],
)  # fmt: skip
def test_answers_rewards_and_ends(texts: list[str], heard: list[tuple[str, float, bool]]) -> None:
    state = begun(TASK, "guitar")
    assert say(TASK, state, texts) == heard
    assert state.over


def test_the_right_guess_with_the_last_turn_is_a_success() -> None:
    task = TwentyQuestions(turns=2)
    state = begun(task, "guitar")
    rng = np.random.default_rng(0)
    task.speak(state, "is it a piano?", rng)
    assert task.speak(state, "no", rng).success is None
    task.speak(state, "is it a guitar?", rng)
    outcome = task.speak(state, "yes", rng)
    assert (outcome.terminated, outcome.truncated, outcome.success) == (True, False, True)


def test_what_is_not_understood_costs_a_turn_and_tells_nothing() -> None:
    state = begun(TASK, "guitar")
    before = TASK.posterior(state)
    heard = say(TASK, state, ["what colour is it?", "blah"])
    assert heard == [("I can't tell", -1.0, False)] * 2
    np.testing.assert_array_equal(TASK.posterior(state), before)
    assert TASK.metrics(state) == {"information": 0.0, "understood": 0.0}


def test_negated_questions_are_answered_the_other_way_round() -> None:
    state, plainly = begun(TASK, "guitar"), begun(TASK, "guitar")
    assert say(TASK, state, ["is it not alive?"]) == [("yes", -1.0, False)]
    assert say(TASK, plainly, ["is it alive?"]) == [("no", -1.0, False)]
    np.testing.assert_array_equal(TASK.posterior(state), TASK.posterior(plainly))
    assert TASK.anchor(state, "system") == TASK.anchor(plainly, "system")


def test_guesses_are_judged_by_the_rules_whatever_is_answered() -> None:
    state, rng = begun(TASK, "guitar"), np.random.default_rng(0)
    TASK.speak(state, "is it a piano?", rng)
    TASK.speak(state, "yes", rng)
    assert not state.over
    assert TASK.posterior(state)[TASK.understanding.read("piano")[0] - TASK.questions] == 0.0
    TASK.speak(state, "guitar", rng)
    assert TASK.speak(state, "no", rng).success is True


def test_the_order_of_questions_does_not_matter_to_the_anchor() -> None:
    first, second = begun(TASK, "guitar"), begun(TASK, "guitar")
    texts = ["is it alive?", "is it soft?"]
    say(TASK, first, texts)
    say(TASK, second, texts[::-1])
    assert TASK.anchor(first, "system") == TASK.anchor(second, "system")
    say(TASK, second, ["is it soft?", "what?"])
    assert TASK.anchor(first, "system") == TASK.anchor(second, "system")
    say(TASK, second, ["is it red?"])
    assert TASK.anchor(first, "system") != TASK.anchor(second, "system")


def test_noisy_answers_count_as_often_as_they_come() -> None:
    task = TwentyQuestions(noise=0.2)
    once, twice = begun(task, "guitar"), begun(task, "guitar")
    say(task, once, ["is it a piano?"])
    say(task, twice, ["is it a piano?"] * 2)
    assert task.anchor(once, "system") != task.anchor(twice, "system")


def test_only_the_answerer_is_told_the_thing() -> None:
    state = begun(TASK, "scissors")
    assert [line.text for line in TASK.transcript(state, "user")] == ["it is some scissors"]
    assert TASK.transcript(state, "system") == []


@pytest.mark.parametrize("name", ["sofa", "a sofa", "Couch"])
def test_things_by_any_name(name: str) -> None:
    assert TASK.table.names[begun(TASK, name).item][0] == "a sofa"


def test_the_answerer_is_wrong_and_vague_at_the_rates_of_the_task() -> None:
    task = TwentyQuestions(noise=0.2, vague=0.1, turns=4000)
    state = begun(task, "guitar")
    answers = [answer for answer, *_ in say(task, state, ["is it alive?"] * 3000)]
    counts = [answers.count(text) / 3000 for text in ("I can't tell", "yes", "no")]
    # five standard errors are below 0.05
    np.testing.assert_allclose(counts, [0.1, 0.9 * 0.2, 0.9 * 0.8], atol=0.05)
    guesses = [answer for answer, *_ in say(task, state, ["is it a piano?"] * 200)]
    assert set(guesses) == {"no"}


def test_the_truthful_answerer_does_not_heed_the_rates() -> None:
    env = dialgym.make(
        "TwentyQuestions-Noisy-utterance-v0", simulator="truthful", noise=0.4, vague=0.4
    )
    env.reset(seed=0, options={"item": "guitar"})
    replies = [env.step("is it alive?")[4]["reply"] for _ in range(19)]
    assert set(replies) == {"no"}


def test_unknown_answers_are_never_made_up(tmp_path: Any) -> None:
    path = tmp_path / "table.csv"
    path.write_text("name,red\ncat,?\ndog,1\nfox,0\n", "utf-8")
    task = TwentyQuestions(table=str(path), noise=0.4)
    state = begun(task, "cat")
    assert {answer for answer, *_ in say(task, state, ["is it red?"] * 15)} == {"I can't tell"}
    np.testing.assert_allclose(task.posterior(state), [1, 0, 0])


def test_it_is_a_task_with_an_exact_posterior() -> None:
    assert isinstance(TASK, ExactPosterior)
    state = begun(TASK, "guitar")
    assert TASK.hypotheses(state) == 401
    assert TASK.table.names[TASK.truth(state)][0] == "a guitar"


def test_returns_are_those_of_the_registry() -> None:
    rows = {row: dialgym.registry.entry_of(f"{row}-v0").row for row in ("TwentyQuestions-16",)}
    task = TwentyQuestions(**rows["TwentyQuestions-16"].settings)
    returns = [sum(play(task, RandomQuestioner(), seed=seed)) for seed in range(600)]
    error = float(np.std(returns)) / len(returns) ** 0.5
    assert abs(np.mean(returns) - rows["TwentyQuestions-16"].scores["random"]) < 5 * error


def test_codes_of_answers() -> None:
    assert (NO, YES, UNCLEAR) == (0, 1, 2)  # 1 - answer turns yes and no round
