"""A picture of a board."""

from collections.abc import Sequence

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from dialgym.tasks.endgames.board import LETTERS, LIGHT

TILE, MARGIN = 48, 24
_TILES = ("#b58863", "#f0d9b5")
_WHITE, _BLACK, _INK = "#ffffff", "#262421", "#40444c"


def drawn(kinds: Sequence[int], squares: Sequence[int]) -> np.ndarray:
    """(432, 432, 3) uint8: the board from white's side, pieces as letters on discs."""
    side = 8 * TILE + 2 * MARGIN
    image = Image.new("RGB", (side, side), "white")
    draw, small = ImageDraw.Draw(image), ImageFont.load_default(13)
    for at in range(64):
        x, y = _corner(at)
        draw.rectangle((x, y, x + TILE, y + TILE), fill=_TILES[int(LIGHT[at])])
    for at in range(8):
        middle = MARGIN + at * TILE + TILE / 2
        draw.text((middle, side - MARGIN / 2), "abcdefgh"[at], _INK, small, anchor="mm")
        draw.text((MARGIN / 2, middle), "87654321"[at], _INK, small, anchor="mm")
    _piece(draw, "K", squares[1], _BLACK, _WHITE)
    white = [("K", squares[0]), *((LETTERS[k], at) for k, at in zip(kinds, squares[2:]) if k)]
    for letter, at in white:
        _piece(draw, letter, at, _WHITE, _BLACK)
    return np.asarray(image)


def _corner(at: int) -> tuple[int, int]:
    return MARGIN + (at & 7) * TILE, MARGIN + (7 - (at >> 3)) * TILE


def _piece(draw: ImageDraw.ImageDraw, letter: str, at: int, disc: str, ink: str) -> None:
    x, y = _corner(at)
    draw.ellipse((x + 5, y + 5, x + TILE - 5, y + TILE - 5), fill=disc, outline=_BLACK, width=2)
    draw.text((x + TILE / 2, y + TILE / 2), letter, ink, ImageFont.load_default(24), anchor="mm")
