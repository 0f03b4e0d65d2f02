"""Questions about generated scenes: what they mean, how they are put, and which are asked.

A question asks about things of a `Description`: *how many (large) (red) (wooden) (balls) are
there (on the left)*. `text` puts a question in words; `understanding.py` takes these words, and
many others, back to what they mean.
"""

from collections.abc import Iterator
from functools import cache
from itertools import permutations
from typing import NamedTuple

from dialgym.tasks.visual_dialogue.captions import ADJECTIVES, article
from dialgym.tasks.visual_dialogue.scenes import (
    CATEGORIES,
    COLOURS,
    COLUMNS,
    GROUNDS,
    MATERIALS,
    ROWS,
    SIZES,
    TIMES,
)


class Description(NamedTuple):
    """Properties of a thing that is meant; None where it does not matter."""

    size: str | None = None
    colour: str | None = None
    material: str | None = None
    category: str | None = None
    row: str | None = None
    column: str | None = None

    @property
    def noun(self) -> str:
        """Name of the things: ``red ball``, ``thing``."""
        made = self.material and ADJECTIVES[self.material]
        words = (self.size, self.colour, made, self.category or "thing")
        return " ".join(word for word in words if word)

    @property
    def place(self) -> str:
        """Position that they are to have: `` on the left``, or nothing."""
        if self.row and self.column:
            return f" at the {self.row} {self.column}"
        if self.row:
            return f" at the {self.row}"
        if self.column:
            return f" {'in' if self.column == 'middle' else 'on'} the {self.column}"
        return ""

    @property
    def only_place(self) -> bool:
        """Return True if a place is all that is said."""
        return not any(self[:4]) and any(self[4:])


class Question(NamedTuple):
    """The meaning of a question, by its kind.

    - ``exist``, ``count``: whether there are things of `about`, and how many.
    - ``ask``: which `attribute` (category, colour, size, material, place) the things have.
    - ``check``: whether they have `value` as this attribute.
    - ``describe``: what they look like.
    - ``relation``: whether one of them is left of, right of, behind or in front of one of `other`.
    - ``ask``, ``check`` of the attributes ``ground`` and ``time``: about the scene as a whole.
    """

    kind: str
    about: Description = Description()
    attribute: str | None = None
    value: str | None = None
    relation: str | None = None
    other: Description | None = None

    @property
    def yes_no(self) -> bool:
        """Return True if it can be answered by yes and no."""
        return self.kind in ("exist", "check", "relation")


RELATIONS = ("left of", "right of", "behind", "in front of")


def place_of(words: str) -> Description:
    """A place by its words: ``left``, ``back``, ``back left``."""
    named = words.split()
    row = next((row for row in ROWS if row in named), None)
    return Description(row=row, column=next((c for c in COLUMNS if c in named), None))


def text(question: Question) -> str:
    """The question in words; `parse` gives it back."""
    kind, about, attribute, value, relation, other = question
    the = f"the {about.noun}{about.place}"
    if attribute == "ground":
        return f"is there {value} on the ground" if value else "what is on the ground"
    if attribute == "time":
        return f"is it {value}" if value else "is it day or night"
    if kind == "exist":
        return f"is there {article(about.noun)}{about.place}"
    if kind == "count":
        return f"how many {about.noun}s are there{about.place}"
    if kind == "describe":
        return f"what does {the} look like"
    if kind == "relation":
        return f"is {the} {relation} the {other.noun}" if other else ""
    return _asked(the, about, attribute) if kind == "ask" else _checked(the, attribute, value)


def _asked(the: str, about: Description, attribute: str | None) -> str:
    if attribute == "colour":
        return f"what colour is {the}"
    if attribute == "size":
        return f"how big is {the}"
    if attribute == "material":
        return f"what is {the} made of"
    if attribute == "place":
        return f"where is {the}"
    return f"what is{about.place}" if about.only_place else f"what is {the}"


def _checked(the: str, attribute: str | None, value: str | None) -> str:
    if attribute == "material":
        return f"is {the} made of {value}"
    if attribute == "category":
        return f"is {the} {article(str(value))}"
    if attribute == "place":
        return f"is {the}{place_of(str(value)).place}"
    return f"is {the} {value}"


@cache
def all_questions() -> tuple[Question, ...]:
    """The questions that scripted questioners choose from, each as `text` puts it once."""
    return tuple(dict.fromkeys(_questions()))


def _questions() -> Iterator[Question]:
    yield Question("ask", attribute="ground")
    yield Question("ask", attribute="time")
    yield from (Question("check", attribute="ground", value=ground) for ground in GROUNDS)
    yield from (Question("check", attribute="time", value=time) for time in TIMES)
    kinds = [Description(category=c) for c in CATEGORIES]
    coloured = [Description(colour=c) for c in COLOURS]
    others = [Description(size=s) for s in SIZES] + [Description(material=m) for m in MATERIALS]
    sides = [Description(column=c) for c in COLUMNS] + [Description(row=r) for r in ROWS]
    cells = [Description(row=r, column=c) for r in ROWS for c in COLUMNS]
    exact = [Description(colour=c, category=k) for c in COLOURS for k in CATEGORIES]
    for about in (Description(), *kinds, *coloured, *others, *sides):
        yield Question("count", about)
    for about in (*kinds, *coloured, *others, *sides, *cells, *exact):
        yield Question("exist", about)
    for about in (*kinds, *coloured, *cells):
        yield from (Question("ask", about, a) for a in ("size", "material"))
        yield Question("describe", about)
    yield from (Question("ask", about, "colour") for about in (*kinds, *cells))
    yield from (Question("ask", about, "category") for about in (*coloured, *sides, *cells))
    yield from (Question("ask", about, "place") for about in (*kinds, *coloured, *exact))
    for about in kinds:
        values = {
            "colour": COLOURS,
            "size": SIZES,
            "material": MATERIALS,
            "place": (*COLUMNS, *ROWS),
        }
        for attribute, known in values.items():
            yield from (Question("check", about, attribute, value) for value in known)
    for first, second in permutations(kinds, 2):
        yield from (Question("relation", first, relation=r, other=second) for r in RELATIONS[::2])
