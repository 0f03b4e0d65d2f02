"""A conversation drawn as bubbles: one party's on the left, the other's on the right."""

import re
from bisect import bisect
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

from PIL import ImageDraw, ImageFont

INK = (40, 44, 52)
COLOURS = {"system": (227, 244, 241), "user": (251, 233, 242)}
"""Of bubbles by speaker, the same in every picture: those of the viewer and of reports."""
OTHER = (238, 240, 243)
PADDING, GAP = 8, 6
PARTS = re.compile(r"[^\s,]+,*\s*|,+\s*")
LONGEST = 2000  # letters of an utterance that are looked at
WIDEST = 0.86  # of the box: what is left shows whose bubble it is


class DrawnTurn(NamedTuple):
    """An utterance to be drawn."""

    speaker: str
    on_left: bool
    text: str


class _Bubble(NamedTuple):
    """The looks of one utterance: its lines, and how much room they take, in pixels."""

    turn: DrawnTurn
    lines: list[str]
    width: float
    height: int


def draw_bubbles(
    draw: ImageDraw.ImageDraw,
    turns: Sequence[DrawnTurn],
    box: tuple[float, float, float, float],
    size: int = 14,
) -> None:
    """Draw the last utterances that fit into a box, the latest at the bottom.

    Args:
        draw: of the image to draw into.
        turns: the utterances.
        box: left, top, right and bottom, in pixels.
        size: of the letters, in pixels.
    """
    left, top, right, bottom = box
    font = ImageFont.load_default(size)
    y = top
    for bubble in _last(draw, turns, font, size, right - left, bottom - top):
        speaker, on_left, _ = bubble.turn
        x = left if on_left else right - bubble.width
        corner = (x + bubble.width, y + bubble.height)
        draw.rounded_rectangle(((x, y), corner), 8, COLOURS.get(speaker, OTHER))
        for i, line in enumerate(bubble.lines):
            draw.text((x + PADDING, y + 3 + i * (size + 4)), line, INK, font)
        y += bubble.height + GAP


def _last(
    draw: ImageDraw.ImageDraw,
    turns: Sequence[DrawnTurn],
    font: Any,
    size: int,
    width: float,
    height: float,
) -> list[_Bubble]:
    """The bubbles of the last utterances, as many as the height has room for."""
    chosen: list[_Bubble] = []
    room = WIDEST * width - 2 * PADDING
    for turn in reversed(turns):
        most = max(int(height) // (size + 4) - 1, 1)
        lines = list(islice(wrapped(draw, turn.text[:LONGEST], font, room), most))
        wide = max(draw.textlength(line, font) for line in lines) + 2 * PADDING
        bubble = _Bubble(turn, lines, wide, len(lines) * (size + 4) + 8)
        height -= bubble.height + GAP
        if height < -GAP and chosen:
            break
        chosen.append(bubble)
    return chosen[::-1]


def wrapped(draw: ImageDraw.ImageDraw, text: str, font: Any, width: float) -> Iterator[str]:
    """The text in lines no wider than `width` pixels, broken at spaces or commas, else anywhere."""
    line = ""
    for part in PARTS.findall(text):
        if _fits(draw, line + part, font, width):
            line += part
            continue
        if line:
            yield line.rstrip()
        while not _fits(draw, part, font, width):
            most = _most(draw, part, font, width)
            yield part[:most]
            part = part[most:]
        line = part
    yield line.rstrip()


def _most(draw: ImageDraw.ImageDraw, text: str, font: Any, width: float) -> int:
    """Number of letters of a text that fit, found by halving."""
    return bisect(range(2, len(text)), 0, key=lambda n: not _fits(draw, text[:n], font, width)) + 1


def _fits(draw: ImageDraw.ImageDraw, text: str, font: Any, width: float) -> bool:
    return len(text) == 1 or draw.textlength(text.rstrip(), font) <= width
