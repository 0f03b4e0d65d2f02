"""Questions: said and understood again, in many words, and never an error."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialgym.language.text import CHARSET
from dialgym.tasks.visual_dialogue.questions import (
    Description,
    Question,
    all_questions,
    text,
)
from dialgym.tasks.visual_dialogue.scenes import (
    ATTRIBUTES,
    CATEGORIES,
    COLOURS,
    COLUMNS,
    MATERIALS,
    ROWS,
    SIZES,
)
from dialgym.tasks.visual_dialogue.understanding import parse
from dialgym.tasks.visual_dialogue.vocabulary import vocabulary


def maybe(values):
    return st.none() | st.sampled_from(values)


DESCRIPTIONS = st.builds(
    Description,
    maybe(SIZES), maybe(COLOURS), maybe(MATERIALS), maybe(CATEGORIES), maybe(ROWS), maybe(COLUMNS),
)  # fmt: skip


def test_the_questions_of_scripted_questioners_are_understood_as_meant():
    questions = all_questions()
    assert [parse(text(question)) for question in questions] == list(questions)
    assert len({text(question) for question in questions}) == len(questions) == 503


@given(st.sampled_from(["exist", "count", "describe"]), DESCRIPTIONS)
def test_any_description_is_understood(kind, about):
    question = Question(kind, about)
    assert parse(text(question)) == question
    assert parse(text(question).upper() + " ?") == question


@given(st.sampled_from(["colour", "size", "material", "category", "place"]), DESCRIPTIONS)
def test_any_attribute_can_be_asked_for(attribute, about):
    question = Question("ask", about, attribute)
    assert parse(text(question)) == question


@given(st.sampled_from(sorted(ATTRIBUTES)), DESCRIPTIONS, st.data())
def test_any_value_can_be_checked(attribute, about, data):
    about = about._replace(row=None, column=None)
    value = data.draw(st.sampled_from(ATTRIBUTES[attribute]))
    question = Question("check", about, attribute, value)
    assert parse(text(question)) == question


@given(st.text(CHARSET, max_size=64) | st.lists(st.sampled_from(vocabulary())).map(" ".join))
def test_anything_is_understood_or_not_but_is_no_error(said):
    question = parse(said)
    assert question is None or parse(text(question)) == question


BALL, RED = Description(category="ball"), Description(colour="red")


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("Is there a ball?", Question("exist", BALL)),
        ("are there any balls", Question("exist", BALL)),
        ("do you see a sphere in the picture?", Question("exist", BALL)),
        ("Can you see anything red?", Question("exist", RED)),
        ("how many balls?", Question("count", BALL)),
        ("How many red things are there in the image?", Question("count", RED)),
        ("how many balls are on the left side?",
         Question("count", Description(category="ball", column="left"))),
        ("what color are the balls?", Question("ask", BALL, "colour")),
        ("What's the red thing?", Question("ask", RED, "category")),
        ("what is in the background", Question("ask", Description(row="back"), "category")),
        ("how large is the ball", Question("ask", BALL, "size")),
        ("what size is the ball", Question("ask", BALL, "size")),
        ("what material is the ball", Question("ask", BALL, "material")),
        ("what is the ball made out of?", Question("ask", BALL, "material")),
        ("where are the balls", Question("ask", BALL, "place")),
        ("can you describe the ball", Question("describe", BALL)),
        ("is the ball big?", Question("check", BALL, "size", "large")),
        ("is the ball wooden?", Question("check", BALL, "material", "wood")),
        ("is the ball made of wood?", Question("check", BALL, "material", "wood")),
        ("is the red one a cube", Question("check", RED, "category", "block")),
        ("is the ball at the back left", Question("check", BALL, "place", "back left")),
        ("is the ball to the left of the red thing",
         Question("relation", BALL, relation="left of", other=RED)),
        ("is there a ball behind the red thing",
         Question("relation", BALL, relation="behind", other=RED)),
        ("is it dark outside?", Question("check", attribute="time", value="night")),
        ("is it night or day?", Question("ask", attribute="time")),
        ("are they on grass?", Question("check", attribute="ground", value="grass")),
        ("what are they standing on?", Question("ask", attribute="ground")),
        ("is there a dog?", None),
        ("is the ball red or blue?", None),
        ("is there a red blue ball?", None),
        ("hello", None),
        ("", None),
        ("?", None),
        ("<stop>", None),
    ],
)  # fmt: skip
def test_free_text(said, meant):
    assert parse(said) == meant


def test_no_word_of_a_question_is_unknown_to_the_tokenizer():
    known = set(vocabulary())
    assert {word for question in all_questions() for word in text(question).split()} <= known
