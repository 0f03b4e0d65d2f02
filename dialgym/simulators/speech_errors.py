"""Errors of speech recognition: how often acts are confused, and the words that sound alike.

Words that sound like a word are those at the smallest edit distance. Of few words the distances of
all pairs are computed at once. Of many, those of one word when it is first asked for, and only to
words whose letters alone do not rule them out: a word cannot be nearer than the number of letters
that it must gain or lose (the bag distance; Bartolini et al. 2002, "String matching with metric
trees using an approximate distance").
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import accumulate
from numbers import Real
from typing import Any

import numpy as np

NEAREST, OFFSET = 6, 0.15
"""Number of neighbours that a word is taken for, and the addition to the probability of each."""
FEW = 400
"""Words of which all pairs are compared at once."""

CONFUSE_TYPE, CONFUSE_SLOT = 0.2, 0.3
"""Shares of confused types and of confused slots; the rest are confused values."""

Neighbour = tuple[list[str], list[float]]
"""The words that a word is taken for, and their cumulated probabilities."""


@lru_cache(maxsize=128)
def neighbours(words: tuple[str, ...], without: str | None = None) -> "Neighbours":
    """The six nearest words of each word by edit distance, but for the word `without`."""
    return Neighbours(words, without)


def draw_neighbour(near: Neighbour, rng: np.random.Generator) -> str:
    """One of the `neighbours` of a word."""
    words, below = near
    return words[min(bisect_right(below, rng.random()), len(words) - 1)]


def check_rate(rate: float) -> float:
    """Return an error rate that is a number from 0 to 1.

    Raises:
        ValueError: it is none.
    """
    if isinstance(rate, bool) or not isinstance(rate, Real) or not 0 <= rate <= 1:
        raise ValueError(
            f"error_rate of the error channel: expected a number from 0 to 1; got {rate!r}. "
            "15 % is 0.15."
        )
    return float(rate)


class Neighbours(Mapping[str, Neighbour]):
    """See `neighbours`; what a word is taken for is computed once. Shared by all that ask."""

    def __init__(self, words: tuple[str, ...], without: str | None) -> None:
        self._words, self._without = words, without
        self._known: dict[str, Neighbour] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return neighbours, (self._words, self._without)

    def __len__(self) -> int:
        return len(self._place)

    def __iter__(self) -> Iterator[str]:
        return iter(self._place)

    def __contains__(self, word: object) -> bool:
        return word in self._place

    def __getitem__(self, word: str) -> Neighbour:
        near = self._known.get(word)
        if near is None:
            near = self._known[word] = self._taken_for(*self._nearest(self._place[word]))
        return near

    @cached_property
    def _place(self) -> dict[str, int]:
        return {word: place for place, word in enumerate(self._words)}

    @cached_property
    def _letters(self) -> "_Letters":
        return _Letters(self._words)

    @cached_property
    def _pairs(self) -> np.ndarray:
        return levenshtein(self._words)

    def _nearest(self, place: int) -> tuple[list[int], np.ndarray]:
        """The places of the nearest words, but for that at `place`, and their distances."""
        if len(self._words) > FEW:
            found, row = self._letters.near(place, NEAREST + 1)
        else:
            found, row = np.arange(len(self._words)), self._pairs[place]
        order = np.argsort(row, kind="stable")
        order = order[found[order] != place][:NEAREST]
        return found[order].tolist(), row[order]

    def _taken_for(self, places: list[int], distances: np.ndarray) -> Neighbour:
        weights = 1 / distances
        weights = weights / weights.sum() + OFFSET
        kept = [(self._words[i], c) for i, c in zip(places, weights)]
        kept = [(word, c) for word, c in kept if word != self._without]
        total = sum(weight for _, weight in kept)
        below = list(accumulate(weight / total for _, weight in kept))
        return [other for other, _ in kept], below


class _Letters:
    """Many words as arrays."""

    def __init__(self, words: Sequence[str]) -> None:
        self.lengths = np.array([len(word) for word in words])
        longest = max(int(self.lengths.max(initial=0)), 1)
        points = np.array(words, f"<U{longest}").view(np.uint32).reshape(len(words), -1)
        alphabet = np.unique(points[points > 0])
        self.codes = np.where(points > 0, np.searchsorted(alphabet, points) + 1, 0)
        self.codes = self.codes.astype(np.int32)
        self.counts = np.zeros((len(words), len(alphabet) + 1), np.int16)
        for column in self.codes.T:
            self.counts[np.arange(len(words)), column] += 1
        self.counts[:, 0] = 0

    def near(self, place: int, count: int) -> tuple[np.ndarray, np.ndarray]:
        """All words that are no farther than the `count`-th nearest, ascending; distances."""
        bound = self._bag_distances(place)
        most = int(np.partition(bound, count - 1)[count - 1])
        while True:
            found = np.flatnonzero(bound <= most)
            distances = self._distances(place, found)
            far = int(np.partition(distances, count - 1)[count - 1])
            if far <= most:
                return found, distances
            most = far

    def _bag_distances(self, place: int) -> np.ndarray:
        """(n,) the least that each word can be away."""
        gained = np.maximum(self.counts - self.counts[place], 0).sum(1, dtype=np.int64)
        return np.maximum(gained, gained - (self.lengths - self.lengths[place]))

    def _distances(self, place: int, others: np.ndarray) -> np.ndarray:
        """(k,) the edit distances of a word to others."""
        lengths = self.lengths[others]
        letters = np.ascontiguousarray(self.codes[others, : int(lengths.max(initial=0))].T)
        table = [np.full(len(others), j, np.int16) for j in range(len(letters) + 1)]
        for i, letter in enumerate(self.codes[place, : self.lengths[place]], 1):
            row = [np.full(len(others), i, np.int16)]
            for j, those in enumerate(letters, 1):
                swap = table[j - 1] + (those != letter)
                row.append(np.minimum(np.minimum(table[j], row[j - 1]) + 1, swap).astype(np.int16))
            table = row
        return np.stack(table)[lengths, np.arange(len(others))].astype(np.int64)


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
