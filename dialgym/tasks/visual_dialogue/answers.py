"""Answers of the rule-based answerer, with probabilities.

An answer depends on a scene through its *content* alone: how many cups there are, which colours
they have. For each content there are a few ways to put it, of which some tell more than others
(``no``, ``no, it is blue``). As all probabilities are known, Bayes' rule is exact.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from dialgym.tasks.visual_dialogue.captions import ADJECTIVES, NUMBERS, article
from dialgym.tasks.visual_dialogue.questions import Description, Question, place_of
from dialgym.tasks.visual_dialogue.scenes import (
    ATTRIBUTES,
    CELLS,
    COLOURS,
    COLUMNS,
    GROUNDS,
    MATERIALS,
    ROWS,
    SIZES,
    TIMES,
    Scenes,
)

UNCLEAR = "I can't tell"
"""The answer to what is not understood, and to a relation of things of which one is not there."""
VAGUE = (UNCLEAR, "I'm not sure", "it is hard to say")
REMEMBERED = 20_000
"""Questions whose answers are kept."""
_ROW = np.array([ROWS.index(row) for row, _ in CELLS])
_COLUMN = np.array([COLUMNS.index(column) for _, column in CELLS])
_HOLDS = {
    "left of": _COLUMN[:, None] < _COLUMN,
    "right of": _COLUMN[:, None] > _COLUMN,
    "behind": _ROW[:, None] < _ROW,
    "in front of": _ROW[:, None] > _ROW,
}
"""By relation (6, 6) bool: whether it holds between a thing in one cell and one in another."""

Said = Mapping[str, float]
"""Ways to put a content, and how often each is chosen; they sum to 1."""


class Answers(NamedTuple):
    """The answers to a question about n scenes."""

    content: np.ndarray  # (n,) int64, into the rows of `chances`
    texts: tuple[str, ...]
    chances: np.ndarray  # (contents, texts) float64: how likely each text is, rows sum to 1
    column: Mapping[str, int]  # of each text, as `normal` has it

    def likelihood(self, said: str) -> np.ndarray | None:
        """(n,) how likely an answer is of each scene; None where it is none of these answers."""
        place = self.column.get(normal(said))
        return None if place is None else self.chances[self.content, place]


class AnswerBook:
    """The answers to any question about some scenes, each worked out when it is first asked for.

    Args:
        scenes: n scenes.
        vague: how often the answer is one of `VAGUE`, whatever the scene.
    """

    def __init__(self, scenes: Scenes, vague: float) -> None:
        self.scenes, self.vague = scenes, vague
        self._known: dict[Question, Answers] = {}

    def answers(self, question: Question) -> Answers:
        """The answers to a question."""
        found = self._known.get(question)
        if found is None:
            if len(self._known) >= REMEMBERED:
                self._known.clear()
            found = self._known[question] = self._work_out(question)
        return found

    def _work_out(self, question: Question) -> Answers:
        keys, content = np.unique(contents(self.scenes, question), return_inverse=True)
        ways = [say(question, int(key)) for key in keys]
        texts = tuple(dict.fromkeys([text for said in ways for text in said] + list(VAGUE)))
        place = {text: i for i, text in enumerate(texts)}
        chances = np.zeros((len(ways), len(texts)))
        for row, said in zip(chances, ways):
            for text, chance in said.items():
                row[place[text]] += (1 - self.vague) * chance
        for text in VAGUE:
            chances[:, place[text]] += self.vague / len(VAGUE)
        column = {normal(text): i for text, i in place.items()}
        return Answers(content.reshape(-1), texts, chances, column)


def normal(said: str) -> str:
    """In lower case, without punctuation."""
    return " ".join(_PUNCTUATION.sub(" ", said.lower()).split())


_PUNCTUATION = re.compile(r"[^a-z0-9' ]")


def matches(scenes: Scenes, about: Description) -> np.ndarray:
    """(n, 6) bool: the cells whose thing is as described."""
    found = scenes.category >= 0
    for name, values in ATTRIBUTES.items():
        wanted = getattr(about, name)
        if wanted is not None:
            found = found & (getattr(scenes, name) == values.index(wanted))
    return found & _cells(about)


def _cells(about: Description) -> np.ndarray:
    """(6,) bool: the cells of the place that is described."""
    fits = [about.row in (None, row) and about.column in (None, column) for row, column in CELLS]
    return np.array(fits)


def contents(scenes: Scenes, question: Question) -> np.ndarray:
    """(n,) int64: what an answer about each scene depends on, as a number that `say` reads."""
    kind, about, attribute, _, relation, other = question
    if attribute in ("ground", "time"):
        return np.asarray(getattr(scenes, attribute), np.int64)
    found = matches(scenes, about)
    if kind in ("exist", "count"):
        return found.sum(1)
    if kind == "relation" and other is not None and relation is not None:
        others = matches(scenes, other)
        holds = (found[:, :, None] & others[:, None] & _HOLDS[relation]).any((1, 2))
        return np.where(found.any(1) & others.any(1), holds, 2).astype(np.int64)
    if kind == "describe":
        return _portraits(scenes, found)
    return _values(scenes, found, str(attribute))


def _values(scenes: Scenes, found: np.ndarray, attribute: str) -> np.ndarray:
    """Number of things found; from the fourth bit a bit for each value (or cell) of theirs."""
    value = np.arange(len(CELLS)) if attribute == "place" else getattr(scenes, attribute)
    bits = np.where(found, 8 << np.maximum(value, 0).astype(np.int64), 0)
    return np.bitwise_or.reduce(bits, axis=1) | found.sum(1)


_SHAPE = (len(COLOURS), len(SIZES), len(MATERIALS), len(ATTRIBUTES["category"]), len(CELLS))


def _portraits(scenes: Scenes, found: np.ndarray) -> np.ndarray:
    """Minus the number of things found, or all about the only one."""
    count, cell = found.sum(1), found.argmax(1)
    rows = np.arange(len(found))
    names = ("colour", "size", "material", "category")
    own = [np.maximum(getattr(scenes, name)[rows, cell], 0) for name in names]
    portrait = np.ravel_multi_index((*own, cell), _SHAPE)
    return np.where(count == 1, portrait, np.where(count == 0, -1, -count))


def say(question: Question, key: int) -> Said:
    """The ways to answer a question where the content is `key`, and how often each is chosen."""
    kind, about, attribute, value, _, _ = question
    if attribute in ("ground", "time"):
        known = GROUNDS if attribute == "ground" else TIMES
        return _of_whole(attribute, known[key], value)
    if kind == "exist":
        return _EXIST[min(key, 3)]
    if kind == "count":
        return _COUNT[min(key, 2)] if key < 2 else _many(key)
    if kind == "relation":
        return _RELATION[key]
    if kind == "describe":
        return _describe(about, key)
    if key == 0:
        return _MISSING
    count, bits = key & 7, key >> 3
    places = [i for i in range(bits.bit_length()) if bits >> i & 1]
    if kind == "check":
        return _check(str(attribute), str(value), places, count > 1)
    return _ask(str(attribute), places, count)


_MISSING: Said = {"there is none": 0.4, "I don't see one": 0.6}
_EXIST: tuple[Said, ...] = (
    {"no": 0.7, "no, there isn't": 0.1, "I don't see one": 0.1, "there is none": 0.1},
    {"yes": 0.7, "yes, there is": 0.1, "yes, one": 0.1, "just one": 0.1},
    {"yes": 0.7, "yes, two": 0.2, "there are two": 0.1},
    {"yes": 0.7, "yes, several": 0.3},
)
_COUNT: tuple[Said, ...] = (
    {"none": 0.5, "there are none": 0.3, "I don't see any": 0.2},
    {"one": 0.5, "just one": 0.3, "only one": 0.2},
)
_RELATION: tuple[Said, ...] = (
    {"no": 0.7, "no, it isn't": 0.3},
    {"yes": 0.7, "yes, it is": 0.3},
    {UNCLEAR: 1.0},
)
_ALL: Said = {"yes": 0.7, "yes, they are": 0.3}
_NONE: Said = {"no": 0.7, "no, they aren't": 0.3}
_SOME: Said = {"some are": 0.5, "not all of them": 0.5}


def _many(count: int) -> Said:
    number = NUMBERS[count]
    return {number: 0.5, f"there are {number}": 0.3, f"I see {number}": 0.2}


def _of_whole(attribute: str, actual: str, asked: str | None) -> Said:
    """About the ground, or the time of day."""
    if asked is None:
        other = f"they are on {actual}" if attribute == "ground" else f"it is {actual} there"
        return {actual: 0.5, f"it is {actual}": 0.3, other: 0.2}
    if asked == actual:
        return {"yes": 0.7, f"yes, {actual}": 0.2, "yes, it is": 0.1}
    return {"no": 0.7, f"no, it is {actual}": 0.2, "no, it isn't": 0.1}


def _ask(attribute: str, places: list[int], count: int) -> Said:
    if attribute == "place":
        return _ask_place(places)
    several = count > 1
    each = several and len(places) < count
    values = [_form(attribute, ATTRIBUTES[attribute][i], each) for i in places]
    if len(values) > 2 or (len(values) == 2 and each and attribute == "category"):
        return {f"{NUMBERS[count]} toys": 0.5, "they are different": 0.5}
    if len(values) == 2:
        return {f"{values[0]} and {values[1]}": 0.7, "they are different": 0.3}
    (value,) = values
    if several:
        return {value: 0.4, f"they are {value}": 0.6}
    looks = "I think it is" if attribute == "category" else "it looks"
    return {value: 0.5, f"it is {value}": 0.3, f"{looks} {value}": 0.2}


def _form(attribute: str, value: str, several: bool) -> str:
    """A value as an answer has it: ``a ball``, ``balls``, ``wooden``, ``red``."""
    if attribute == "category":
        return f"{value}s" if several else article(value)
    return ADJECTIVES.get(value, value)


def _ask_place(places: list[int]) -> Said:
    rows, columns = ({CELLS[i][axis] for i in places} for axis in (0, 1))
    row = Description(row=min(rows)).place.strip()
    column = Description(column=min(columns)).place.strip()
    if len(places) == 1:
        cell = Description(row=min(rows), column=min(columns)).place.strip()
        return {column: 0.35, row: 0.15, cell: 0.35, f"it is {cell}": 0.15}
    if len(rows) == 1:
        return {f"they are all {row}": 1.0}
    return {f"they are all {column}": 1.0} if len(columns) == 1 else {"here and there": 1.0}


def _check(attribute: str, asked: str, places: list[int], several: bool) -> Said:
    if attribute == "place":
        right = [bool(_cells(place_of(asked))[i]) for i in places]
    else:
        right = [ATTRIBUTES[attribute][i] == asked for i in places]
    if several:
        return _ALL if all(right) else _SOME if any(right) else _NONE
    if all(right):
        return {"yes": 0.7, "yes, it is": 0.2, "it is": 0.1}
    if attribute == "place":
        actual = Description(column=CELLS[places[0]][1]).place.strip()
    else:
        actual = _form(attribute, ATTRIBUTES[attribute][places[0]], several)
    return {"no": 0.7, "no, it isn't": 0.1, f"no, it is {actual}": 0.2}


def _describe(about: Description, key: int) -> Said:
    if key < 0:
        return _MISSING if key == -1 else {f"there are {NUMBERS[-key]} of them": 1.0}
    places = np.unravel_index(key, _SHAPE)
    colour, size = COLOURS[places[0]], SIZES[places[1]]
    material = ADJECTIVES[MATERIALS[places[2]]]
    noun = "one" if about.category else ATTRIBUTES["category"][places[3]]
    column = Description(column=CELLS[places[4]][1]).place
    return {
        f"{article(f'{size} {colour} {noun}')}{column}": 0.4,
        article(f"{size} {colour} {material} {noun}"): 0.2,
        article(f"{colour} {material} {noun}"): 0.2,
        f"{size} and {material}": 0.2,
    }
