"""Understanding of free text: wordings, guesses, words in common, and nothing."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialgym.tasks.twenty_questions import TwentyQuestions
from dialgym.tasks.twenty_questions.table import BUILT_IN
from dialgym.tasks.twenty_questions.types import NO, NOTHING, UNCLEAR, YES
from dialgym.tasks.twenty_questions.understanding import read_answer

TASK = TwentyQuestions()


def understood(text: str, task: TwentyQuestions = TASK) -> str:
    """The first wording of what a text is taken for; ``not`` before it where it is negated."""
    code, negated = task.understanding.read(text)
    return "nothing" if code == NOTHING else f"{'not ' * negated}{task.said[code]}"


@pytest.mark.parametrize("name", BUILT_IN)
def test_every_wording_of_a_question_and_every_name_is_understood(name: str) -> None:
    task = TwentyQuestions(table=name)
    for code, wordings in enumerate(task.table.questions):
        for wording in wordings:
            assert task.understanding.read(wording) == (code, False)
            assert task.understanding.read(wording.upper().removesuffix("?")) == (code, False)
    for code, names in enumerate(task.table.names, task.questions):
        for thing in names:
            assert task.understanding.read(f"is it {thing}?") == (code, False)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Is it an animal?", "is it an animal?"),
        ("is this thing a living thing", "is it alive?"),
        ("is it usually found in the kitchen?", "is it found in a kitchen?"),
        ("Do people sit on it?", "can you sit or lie on it?"),
        ("do they have wings?", "does it have wings?"),
        ("is it metal?", "is it made of metal?"),
        ("can it not fly?", "not can it fly?"),
        ("is it something that does not fly?", "not can it fly?"),
        ("is it without wheels?", "not does it have wheels?"),
        ("isn't it alive?", "is it alive?"),
        ("cat", "is it a cat?"),
        ("I think it's a cat!", "is it a cat?"),
        ("my guess is the polar bear", "is it a polar bear?"),
        ("is it a couch?", "is it a sofa?"),
        ("bread", "is it some bread?"),
        ("what colour is it?", "nothing"),
        ("how many legs does it have?", "nothing"),
        ("is it red or green?", "nothing"),
        ("is it not a cat?", "nothing"),
        ("is it a unicorn?", "nothing"),
        ("is it?", "nothing"),
        ("", "nothing"),
        ("  ??? ", "nothing"),
    ],
)
def test_free_text(text: str, expected: str) -> None:
    assert understood(text) == expected


def test_proper_names() -> None:
    task = TwentyQuestions(table="cities")
    assert understood("PARIS!", task) == "is it Paris?"
    assert understood("I guess new york", task) == "is it New York?"
    assert understood("is it bombay", task) == "is it Mumbai?"
    assert understood("is it in Asia", task) == "is it in asia?"
    assert understood("is it an Asian city?", task) == "is it in asia?"


def test_questions_with_a_negation_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text(
        "name,is it without wheels?,can it fly?,does it never rest?,does it rest at home?\n"
        "cat,yes,no,no,yes\nbike,no,no,yes,yes\ncrow,yes,yes,no,no\n"
    )
    task = TwentyQuestions(table=str(path))
    assert understood("is it a thing without wheels?", task) == "is it without wheels?"
    assert understood("does it have wheels?", task) == "not is it without wheels?"
    assert understood("is it never at rest?", task) == "does it never rest?"
    assert understood("is it something that does not fly?", task) == "not can it fly?"


def test_two_questions_that_differ_in_a_negation(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("name,has it wheels?,is it without wheels?\ncat,no,yes\nbike,yes,no\n")
    task = TwentyQuestions(table=str(path))
    assert understood("is it a thing with wheels?", task) == "has it wheels?"
    assert understood("is it a thing without wheels?", task) == "is it without wheels?"


@given(st.text(max_size=60))
def test_any_text_is_understood_as_something_or_nothing(text: str) -> None:
    code, negated = TASK.understanding.read(text)
    assert NOTHING <= code < len(TASK.said)
    assert not (negated and code >= TASK.questions)


@given(st.sampled_from(TASK.said), st.sampled_from(["", "so, ", "hm "]), st.sampled_from("?! ."))
def test_punctuation_and_capitals_do_not_matter(said: str, before: str, after: str) -> None:
    plainly = TASK.understanding.read(said)
    assert TASK.understanding.read(said.title().replace("?", after)) == plainly
    if before == "":
        assert TASK.understanding.read(f" {said}  ") == plainly


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("yes", YES),
        ("Yes, it is.", YES),
        ("no!", NO),
        ("no, never", NO),
        ("I can't tell", UNCLEAR),
        ("yesterday", UNCLEAR),
        ("", UNCLEAR),
    ],
)
def test_answers(text: str, meaning: int) -> None:
    assert read_answer(text) == meaning
