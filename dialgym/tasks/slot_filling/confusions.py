"""What an act can be taken for: types, slots and values that sound alike, or any others."""

from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate

import numpy as np

from dialgym.language.acts import Act, Item
from dialgym.tasks.slot_filling.ontology import DONTCARE, NAME, TYPE, Ontology

Generator = np.random.Generator
ACTS = ("hello", "thankyou", "ack", "bye", "inform", "request", "reqalts", "reqmore", "confirm",
        "affirm", "negate", "deny", "repeat", "null")  # fmt: skip
"""The types that an act may seem to have."""
_ONE_SLOT, _ONE_VALUE = ("request",), ("inform", "reqalts", "confirm", "affirm", "negate")
CONFUSE_TYPE, CONFUSE_SLOT = 0.2, 0.3
"""How often it is the type, and the slot, that is confused; else it is a value."""
TRIES = 25
NEAREST, OFFSET = 6, 0.15
"""How many neighbours a word is taken for, and what evens out their chances."""

Neighbours = dict[str, tuple[list[str], list[float]]]
"""Of each word the words it is taken for, and their cumulated chances."""


class RandomConfusions:
    """Any other type, slot or value, all equally likely."""

    def __init__(self, ontology: Ontology) -> None:
        self.ontology = ontology
        self._values = {s: (*v, DONTCARE) for s, v in ontology.informable.items()}

    def confuse(self, act: Act, rng: Generator) -> Act | None:
        """Another act than `act`, and never a ``bye``; None if none was found in 25 tries."""
        for _ in range(TRIES):
            other = self._try(act, rng)
            if other.type != "bye" and not other.same(act):
                return other
        return None

    def _try(self, act: Act, rng: Generator) -> Act:
        draw = rng.random()
        if draw < CONFUSE_TYPE or not act.items or not act.items[0].slot:
            return self._with_other_type(act, rng)
        if draw < CONFUSE_TYPE + CONFUSE_SLOT:
            return self._with_other_slots(act, rng)
        return self._with_other_value(act, rng)

    def _with_other_type(self, act: Act, rng: Generator) -> Act:
        kind = self._type(act.type, rng)
        if kind not in _ONE_SLOT + _ONE_VALUE:
            return Act(kind)
        slot = _any(self.ontology.requestable, rng)
        value = self._any_value(slot, rng) if kind in _ONE_VALUE else None
        return Act(kind, (Item(slot, value),))

    def _with_other_slots(self, act: Act, rng: Generator) -> Act:
        items = list(act.items)
        for place, item in enumerate(items):
            if item.slot in ("", TYPE):
                break
            slot = self._slot(item.slot, rng)
            items[place] = Item(slot, item.value and self._any_value(slot, rng))
        return Act(act.type, tuple(items))

    def _with_other_value(self, act: Act, rng: Generator) -> Act:
        place = int(rng.random() * len(act.items))
        slot, value, _ = act.items[place]
        if value is None or slot in ("", TYPE):
            return act
        other = Item(slot, self._value(slot, value, rng))
        return Act(act.type, (*act.items[:place], other, *act.items[place + 1 :]))

    def _any_value(self, slot: str, rng: Generator) -> str | None:
        return _any(self._values[slot], rng) if slot in self._values else None

    def _type(self, kind: str, rng: Generator) -> str:
        return _any_but(kind, ACTS, rng)

    def _slot(self, slot: str, rng: Generator) -> str:
        return _any_but(slot, self.ontology.requestable, rng)

    def _value(self, slot: str, value: str, rng: Generator) -> str | None:
        return _any_but(value, self._values[slot], rng) if slot in self._values else None


class LevenshteinConfusions(RandomConfusions):
    """One of the six words with the smallest edit distance, the nearer the more likely.

    The chance is the reciprocal of the distance, normalised, plus 0.15, normalised. Of words
    equally far the first in the ontology is the nearer.
    """

    def __init__(self, ontology: Ontology) -> None:
        super().__init__(ontology)
        self._types = neighbours(ACTS)
        self._slots = neighbours(ontology.requestable, without=NAME)
        self._near: dict[str, Neighbours] = {}
        self._confusable = {*ontology.system_requestable, NAME}

    def _type(self, kind: str, rng: Generator) -> str:
        return _draw(self._types[kind], rng) if kind in self._types else super()._type(kind, rng)

    def _slot(self, slot: str, rng: Generator) -> str:
        near = self._slots.get(slot, ([], []))
        return _draw(near, rng) if near[0] else super()._slot(slot, rng)

    def _value(self, slot: str, value: str, rng: Generator) -> str | None:
        if slot in self._confusable:
            if slot not in self._near:
                self._near[slot] = neighbours(self._values[slot])
            if value in self._near[slot]:
                return _draw(self._near[slot][value], rng)
        return super()._value(slot, value, rng)


def _any(options: Sequence[str], rng: Generator) -> str:
    return options[int(rng.random() * len(options))]


def _any_but(word: str, options: Sequence[str], rng: Generator) -> str:
    others = [option for option in options if option != word]
    return _any(others, rng) if others else word


def _draw(near: tuple[list[str], list[float]], rng: Generator) -> str:
    words, below = near
    return words[min(bisect_right(below, rng.random()), len(words) - 1)]


@lru_cache(maxsize=128)
def neighbours(words: tuple[str, ...], without: str | None = None) -> Neighbours:
    """Of each word the six others at the smallest edit distance, but for the word `without`."""
    distances = levenshtein(words)
    near: Neighbours = {}
    for word, row in zip(words, distances):
        order = [i for i in np.argsort(row, kind="stable").tolist() if words[i] != word]
        chances = 1 / row[order[:NEAREST]]
        chances = chances / chances.sum() + OFFSET
        kept = [(words[i], c) for i, c in zip(order, chances) if words[i] != without]
        total = sum(chance for _, chance in kept)
        below = list(accumulate(chance / total for _, chance in kept))
        near[word] = ([other for other, _ in kept], below)
    return near


def levenshtein(words: Sequence[str]) -> np.ndarray:
    """(n, n) int64: the edit distance of each two words.

    All pairs are computed at once: `table[j]` is the distance of the first i letters of one word
    to the first j of the other, for all pairs.
    """
    lengths = np.array([len(word) for word in words])
    longest = int(lengths.max(initial=0))
    letters = np.array(words, f"<U{longest or 1}").view(np.uint32).reshape(len(words), -1)
    size = (len(words), len(words))
    table = [np.full(size, j, np.int16) for j in range(longest + 1)]
    ends = np.stack([np.where(lengths == j, True, False) for j in range(longest + 1)])
    found = np.zeros(size, np.int64)
    for i in range(longest + 1):
        if i:
            table = _next_row(table, letters[:, i - 1], letters, i)
        rows = np.flatnonzero(ends[i])
        for j in range(longest + 1) if len(rows) else ():
            columns = np.flatnonzero(ends[j])
            found[np.ix_(rows, columns)] = table[j][np.ix_(rows, columns)]
    return found


def _next_row(
    table: list[np.ndarray], letter: np.ndarray, letters: np.ndarray, i: int
) -> list[np.ndarray]:
    row = [np.full_like(table[0], i)]
    for j in range(1, len(table)):
        swap = table[j - 1] + (letter[:, None] != letters[None, :, j - 1])
        row.append(np.minimum(np.minimum(table[j], row[j - 1]) + 1, swap).astype(np.int16))
    return row
