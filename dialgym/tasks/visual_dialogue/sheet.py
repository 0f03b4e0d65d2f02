"""A dialogue beside its picture, with the curve of the percentile rank below."""

from collections.abc import Sequence

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from dialgym.language import Utterance
from dialgym.language.bubbles import INK, DrawnTurn, draw_bubbles, wrapped
from dialgym.tasks.visual_dialogue.types import QUESTIONER

WIDTH = 920
PICTURE = 480
CURVE = 160
FAINT = (205, 210, 218)
MARK = (58, 124, 206)


def draw_dialogue(
    picture: np.ndarray, lines: Sequence[Utterance], percentiles: Sequence[float]
) -> np.ndarray:
    """(H, 920, 3) uint8: a picture (any size), the caption and what was said, the rank by turn."""
    image = Image.fromarray(picture)
    image = image.resize((PICTURE, image.height * PICTURE // image.width))
    height = max(image.height + CURVE, 520)
    sheet = Image.new("RGB", (WIDTH, height), "white")
    sheet.paste(image, (0, 0))
    draw = ImageDraw.Draw(sheet)
    _talk(draw, lines, height)
    _curve(draw, percentiles, image.height)
    return np.asarray(sheet)


def _talk(draw: ImageDraw.ImageDraw, lines: Sequence[Utterance], height: int) -> None:
    left, right = PICTURE + 16, WIDTH - 16
    turns = [DrawnTurn(line.speaker, line.speaker == QUESTIONER, line.text) for line in lines[1:]]
    font = ImageFont.load_default(14)
    y = 12
    for text in wrapped(draw, lines[0].text, font, right - left):
        draw.text((left, y), text, INK, font)
        y += 18
    draw_bubbles(draw, turns, (left, y + 8, right, height - 12))


def _curve(draw: ImageDraw.ImageDraw, percentiles: Sequence[float], top: int) -> None:
    """The percentile rank after the caption and each answer; the axis begins below the lowest."""
    font = ImageFont.load_default(12)
    low = min(0.9, np.floor(10 * min(percentiles)) / 10)
    left, right, above, below = 56, PICTURE - 24, top + 30, top + CURVE - 28
    steps = max(len(percentiles) - 1, 1)

    def place(turn: int, value: float) -> tuple[float, float]:
        part = (value - low) / (1 - low)
        return left + (right - left) * turn / steps, below - (below - above) * part

    draw.text((12, top + 8), "percentile rank of the image", INK, font)
    for value in (low, (1 + low) / 2, 1.0):
        y = place(0, value)[1]
        draw.line((left, y, right, y), FAINT)
        draw.text((16, y - 8), f"{value:.2f}", INK, font)
    points = [place(turn, value) for turn, value in enumerate(percentiles)]
    draw.line(points, MARK, 2)
    for turn, (x, y) in enumerate(points):
        draw.ellipse((x - 4, y - 4, x + 4, y + 4), MARK)
        draw.text((x - 3, below + 8), str(turn), INK, font)
