"""Pictures of worlds on a grid: cells, ways between them, and the path that was gone."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

Cell = tuple[int, int]
CELL = 44
"""Pixels of a cell of the grid."""
PATH, HERE = "#3b6fd4", "#1d3f8a"


class GridPicture:
    """A picture that is drawn cell by cell.

    Args:
        rows, columns: of the grid.
        ground: colour between the cells.
        wide, high: pixels of a cell.
    """

    def __init__(
        self, rows: int, columns: int, ground: str, wide: int = CELL, high: int = CELL
    ) -> None:
        from PIL import Image, ImageDraw, ImageFont

        self.wide, self.high = wide, high
        self.image = Image.new("RGB", (columns * wide, rows * high), ground)
        self.draw, self.font = ImageDraw.Draw(self.image), ImageFont.load_default(12)

    def centre(self, cell: Cell) -> tuple[float, float]:
        """Pixels of the middle of a cell."""
        return (cell[1] + 0.5) * self.wide, (cell[0] + 0.5) * self.high

    def cell(self, cell: Cell, colour: str, margin: int = 0, text: str = "") -> None:
        """A rectangle that leaves a margin of a cell, in pixels, with text in it."""
        (x, y), wide, high = self.centre(cell), self.wide - 2 * margin, self.high - 2 * margin
        box = (x - wide / 2, y - high / 2, x + wide / 2 - 1, y + high / 2 - 1)
        self.draw.rectangle(box, colour)
        self.draw.text((x, y - high / 2 + 4), text, "#2b303b", self.font, anchor="ma")

    def way(self, first: Cell, second: Cell, colour: str) -> None:
        """A way between two cells."""
        self.draw.line((*self.centre(first), *self.centre(second)), colour, 6)

    def drawn(self, path: Sequence[Cell]) -> np.ndarray:
        """(H, W, 3) uint8: the picture with a path, at whose end one is."""
        for first, second in pairwise(path):
            self.draw.line((*self.centre(first), *self.centre(second)), PATH, 3)
        x, y = self.centre(path[-1])
        self.draw.ellipse((x - 7, y - 7, x + 7, y + 7), HERE)
        return np.asarray(self.image)
