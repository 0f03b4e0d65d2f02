"""A picture of the database before and after a dialogue, and of what the user wanted."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from dialgym.tasks.service_desk.domains import DeskDomain
from dialgym.tasks.service_desk.judgement import judged
from dialgym.tasks.service_desk.types import DeskState

WIDTH, MARGIN, ROW = 760, 16, 22
INK, FAINT, LINE = (40, 44, 52), (120, 126, 138), (222, 226, 232)
_AFTER = "after it: changed as they should be (green), or not (red)"
RIGHT, WRONG = (205, 238, 214), (250, 212, 212)
"""Of cells that are as they should be after a change, and of those that are not."""


def drawn(domain: DeskDomain, state: DeskState) -> np.ndarray:
    """(H, 760, 3) uint8: records before and after, changed cells marked, then wishes and faults."""
    lines = [*judged(domain, state)]
    height = 2 * MARGIN + ROW * (2 * (len(state.records) + 2) + len(lines))
    image = Image.new("RGB", (WIDTH, height), "white")
    sheet = _Sheet(ImageDraw.Draw(image), domain)
    before = state.goal.records
    sheet.table("before the dialogue", before, before, before)
    sheet.table(_AFTER, state.records, before, state.goal.end)
    for text, good in lines:
        sheet.line(text, good)
    return np.asarray(image)


class _Sheet:
    """Draws rows from top to bottom."""

    def __init__(self, draw: ImageDraw.ImageDraw, domain: DeskDomain) -> None:
        self.draw, self.domain, self.y = draw, domain, MARGIN
        self.font: Any = ImageFont.load_default(13)
        self.bold: Any = ImageFont.load_default(15)
        self.step = (WIDTH - 2 * MARGIN) / len(domain.fields)

    def table(
        self,
        title: str,
        records: Sequence[Sequence[int]],
        before: Sequence[Sequence[int]],
        wanted: Sequence[Sequence[int]],
    ) -> None:
        self._text(MARGIN, f"{self.domain.noun.capitalize()}s {title}", self.bold)
        self.y += ROW
        for at, field in enumerate(self.domain.fields):
            self._text(MARGIN + at * self.step, field.name, self.font, FAINT)
        self.y += ROW
        for record, first, goal in zip(records, before, wanted):
            for at, field in enumerate(self.domain.fields):
                x = MARGIN + at * self.step
                if record[at] != first[at] or record[at] != goal[at]:
                    colour = RIGHT if record[at] == goal[at] else WRONG
                    self.draw.rectangle(
                        (x - 4, self.y, x + self.step - 8, self.y + ROW - 3), colour
                    )
                self._text(x, field.values[record[at]], self.font)
            self.y += ROW
            self.draw.line((MARGIN, self.y - 2, WIDTH - MARGIN, self.y - 2), LINE)

    def line(self, text: str, good: bool) -> None:
        box = (MARGIN - 4, self.y + 4, MARGIN + 6, self.y + 14)
        self.draw.rectangle(box, RIGHT if good else WRONG, LINE)
        self._text(MARGIN + 14, text, self.font)
        self.y += ROW

    def _text(self, x: float, text: str, font: Any, colour: tuple[int, ...] = INK) -> None:
        self.draw.text((x, self.y + 2), text, colour, font)
