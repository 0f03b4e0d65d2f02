"""Conversations drawn as bubbles."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageDraw, ImageFont

from dialgym.bubbles import LEFT, RIGHT, draw_bubbles, wrapped

FONT = ImageFont.load_default(14)


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
    draw_bubbles(draw, [(True, "hello"), (False, "good morning")], (10, 10, 290, 190))
    pixels = np.asarray(image)
    left, right = ((pixels == colour).all(axis=2).nonzero() for colour in (LEFT, RIGHT))
    assert left[1].min() == 10
    assert left[1].max() < 150
    assert right[1].max() == 290
    assert left[0].max() < right[0].min()


@pytest.mark.parametrize("text", ["word " * 300, "x" * 2000], ids=["words", "one word"])
def test_a_text_longer_than_the_box_stays_within_it(text: str):
    image, draw = canvas()
    draw_bubbles(draw, [(True, "first"), (False, text)], (10, 10, 290, 190))
    assert (np.asarray(image)[195:] == 255).all()


def test_the_latest_utterances_are_shown():
    pictures = []
    for first in ("a", "b"):
        image, draw = canvas()
        draw_bubbles(draw, [(True, first), *[(False, "later")] * 20], (10, 10, 290, 190))
        pictures.append(np.asarray(image))
    assert (pictures[0] == pictures[1]).all()
