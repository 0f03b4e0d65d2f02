"""A picture of the database before and after a dialogue, and of what the user wanted."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from dialgym.tasks.service_desk import rules
from dialgym.tasks.service_desk.domains import NONE, DeskDomain
from dialgym.tasks.service_desk.types import FAULTS, DeskState, Request

WIDTH, MARGIN, ROW = 760, 16, 22
INK, FAINT, LINE = (40, 44, 52), (120, 126, 138), (222, 226, 232)
RIGHT, WRONG = (205, 238, 214), (250, 212, 212)
"""Of cells that are as they should be after a change, and of those that are not."""


def drawn(domain: DeskDomain, state: DeskState) -> np.ndarray:
    """(H, 760, 3) uint8: records before and after, changed cells marked, then wishes and faults."""
    count, wishes = len(state.records), len(state.goal.requests)
    height = 2 * MARGIN + ROW * (2 * (count + 2) + wishes + 3)
    image = Image.new("RGB", (WIDTH, height), "white")
    sheet = _Sheet(ImageDraw.Draw(image), domain)
    before = state.goal.records
    sheet.table("before", before, before, before)
    sheet.table("after", state.records, before, state.goal.end)
    for text, good in _lines(domain, state):
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
        self._text(MARGIN, f"{self.domain.noun}s {title}", self.bold)
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


def _lines(domain: DeskDomain, state: DeskState) -> Iterator[tuple[str, bool]]:
    """Lines on each wish, met or not; on faults; on the whole."""
    for place, request in enumerate(state.goal.requests):
        met = rules.is_met(domain, state, place)
        yield f"{_wish(domain, state, request)}: {'met' if met else 'not met'}", met
    faults = [name for bit, name in enumerate(FAULTS) if state.faults >> bit & 1]
    yield f"faults: {', '.join(faults) or 'none'}", not faults
    solved = rules.grade(domain, state).solved
    yield "solved" if solved else "not solved", solved


def _wish(domain: DeskDomain, state: DeskState, request: Request) -> str:
    """A request in a few words, and what is to come of it."""
    about = [domain.kinds[request.kind]]
    if request.record != NONE:
        number = domain.fields[0].values[state.goal.records[request.record][0]]
        about.append(f"{domain.noun} {number}")
    field = domain.argument(request.kind)
    if field:
        about.append(f"{field.name} {field.values[request.final]}")
    if state.goal.impostor:
        about.append("(to be refused: nobody has identified)")
    elif request.forbidden:
        about.append("(to be refused: a rule forbids it)")
    elif request.withdrawn:
        about.append("(withdrawn)")
    return " ".join(about)
