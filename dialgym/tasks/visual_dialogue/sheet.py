"""A dialogue beside its picture, with the curve of the percentile rank below."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from dialgym.language import Utterance
from dialgym.tasks.visual_dialogue.types import QUESTIONER

WIDTH = 920
PICTURE = 480
CURVE = 160
LINE = 22
INK, FAINT, ASKS, ANSWERS = (40, 44, 52), (205, 210, 218), (232, 240, 252), (236, 246, 234)
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
    font = ImageFont.load_default(14)
    draw.text((left, 12), _fitted(draw, lines[0].text, font, right - left), INK, font)
    shown = lines[1:][-((height - 50) // LINE) :]
    for i, line in enumerate(shown):
        asks = line.speaker == QUESTIONER
        text = _fitted(draw, line.text, font, right - left - 40)
        wide = draw.textlength(text, font) + 16
        x, y = (left if asks else right - wide), 42 + LINE * i
        draw.rounded_rectangle((x, y, x + wide, y + LINE - 3), 8, ASKS if asks else ANSWERS)
        draw.text((x + 8, y + 1), text, INK, font)


def _fitted(draw: ImageDraw.ImageDraw, text: str, font: Any, room: float) -> str:
    """The text, cut where there is no room for more."""
    text = text[: int(room / 3)]  # a letter is wider
    if draw.textlength(text, font) <= room:
        return text
    while text and draw.textlength(f"{text}...", font) > room:
        text = text[:-1]
    return f"{text}..."


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
