"""The board of a game as an image."""

from collections.abc import Sequence

import numpy as np

from dialgym.tasks.wordle.patterns import LENGTH, REPLIES
from dialgym.tasks.wordle.types import INVALID

TILE, GAP = 56, 6
COLOURS = {"g": "#538d4e", "y": "#b59f3b", "b": "#3a3a3c", "": "#8b3a3a"}


def board(guesses: Sequence[str], patterns: Sequence[int], turns: int) -> np.ndarray:
    """The game as an (H, W, 3) uint8 image: a row a guess, red where it was invalid."""
    from PIL import Image, ImageDraw, ImageFont

    rows = max(turns, len(guesses))
    size = (LENGTH * (TILE + GAP) + GAP, rows * (TILE + GAP) + GAP)
    image = Image.new("RGB", size, "#121213")
    draw, font = ImageDraw.Draw(image), ImageFont.load_default(32)
    for row in range(rows):
        guess = guesses[row][:LENGTH] if row < len(guesses) else ""
        colours = _colours(patterns[row]) if row < len(guesses) else [None] * LENGTH
        for column, colour in enumerate(colours):
            x, y = GAP + column * (TILE + GAP), GAP + row * (TILE + GAP)
            box = (x, y, x + TILE, y + TILE)
            draw.rectangle(box, fill=colour, outline=None if colour else "#3a3a3c", width=2)
            letter = guess[column : column + 1].upper()
            centre = (x + TILE / 2, y + TILE / 2)
            draw.text(centre, letter, fill="white", font=font, anchor="mm")
    return np.asarray(image)


def _colours(pattern: int) -> list[str | None]:
    if pattern == INVALID:
        return [COLOURS[""]] * LENGTH
    return [COLOURS[c] for c in str(REPLIES[pattern])[::2]]
