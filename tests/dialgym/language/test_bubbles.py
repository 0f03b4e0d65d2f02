"""Conversations drawn as bubbles."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageDraw, ImageFont

import dialgym
from dialgym.language.bubbles import COLOURS, DrawnTurn, draw_bubbles, wrapped

FONT = ImageFont.load_default(14)


def said(speaker: str, text: str) -> DrawnTurn:
    """The user stands on the left."""
    return DrawnTurn(speaker, speaker == "user", text)


def canvas() -> tuple[Image.Image, ImageDraw.ImageDraw]:
    image = Image.new("RGB", (300, 200), "white")
    return image, ImageDraw.Draw(image)


@given(st.text(alphabet="ab, ", max_size=80), st.integers(20, 200))
def test_lines_are_no_wider_than_asked_and_lose_no_letter(text: str, width: int):
    _, draw = canvas()
    lines = list(wrapped(draw, text, FONT, width))
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")
    assert all(len(line) == 1 or draw.textlength(line, FONT) <= width for line in lines)


def test_parties_stand_on_their_sides_and_within_the_box():
    image, draw = canvas()
    draw_bubbles(
        draw,
        [said("user", "hello"), said("system", "good morning")],
        (10, 10, 290, 190),
    )
    pixels = np.asarray(image)
    left, right = (
        (pixels == colour).all(axis=2).nonzero() for colour in (COLOURS["user"], COLOURS["system"])
    )
    assert left[1].min() == 10
    assert left[1].max() < 150
    assert right[1].max() == 290
    assert left[0].max() < right[0].min()


@pytest.mark.parametrize("text", ["word " * 300, "x" * 2000], ids=["words", "one word"])
def test_a_text_longer_than_the_box_stays_within_it(text: str):
    image, draw = canvas()
    draw_bubbles(draw, [said("user", "first"), said("system", text)], (10, 10, 290, 190))
    assert (np.asarray(image)[195:] == 255).all()


def test_the_latest_utterances_are_shown():
    pictures = []
    for first in ("a", "b"):
        image, draw = canvas()
        draw_bubbles(
            draw,
            [said("user", first), *[said("system", "later")] * 20],
            (10, 10, 290, 190),
        )
        pictures.append(np.asarray(image))
    assert (pictures[0] == pictures[1]).all()


@pytest.mark.parametrize("learner", ["system", "user"])
def test_a_speaker_keeps_its_colour_whoever_looks(learner: str):
    env = dialgym.make("dialgym/TwentyQuestions-8-utterance-v0", learner=learner,
                       simulator="random" if learner == "user" else None,
                       render_mode="rgb_array")  # fmt: skip
    env.reset(seed=1)
    env.step("yes" if learner == "user" else "is it alive")
    picture = np.asarray(env.render())
    for speaker in ("system", "user"):
        places = (picture == COLOURS[speaker]).all(axis=2).nonzero()[1]
        assert (places.max() > 600) == (speaker == learner)
        assert (places.min() < 20) == (speaker != learner)
