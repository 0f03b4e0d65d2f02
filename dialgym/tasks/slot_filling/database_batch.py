"""Which rows meet the constraints of each of many dialogues: the bit sets of `Database`, packed."""

from collections.abc import Iterable

import numpy as np

from dialgym.tasks.slot_filling.database import Database

ANYTHING = -1
"""In place of a value: the slot does not constrain."""


class PackedDatabase:
    """Queries of many dialogues at once; equal to those of `Database`, dialogue by dialogue.

    A set of rows is ``words`` uint64 numbers: bit ``r % 64`` of word ``r // 64`` is row ``r``.
    """

    def __init__(self, database: Database) -> None:
        informable = database.ontology.informable
        sets = [database.bits(s, value) for s, values in informable.items() for value in values]
        sizes = np.array([len(values) for values in informable.values()])
        self._starts = np.cumsum(sizes) - sizes
        self._sets = pack([*sets, database.everything], len(database))  # (values + 1, words)
        self._telling = [list(informable).index(slot) for slot in database.telling]
        self._others = self._other_rows(database)

    def _other_rows(self, database: Database) -> np.ndarray:
        """(rows, telling slots, words) uint64: the rows that differ from a row on a slot."""
        slots = database.telling
        alike = [[database.bits(slot, row[slot]) for slot in slots] for row in database.rows]
        others = [database.everything & ~found for each in alike for found in each]
        return pack(others, len(database)).reshape(len(database), len(slots), -1)

    def matches(self, wanted: np.ndarray) -> np.ndarray:
        """(n, words) uint64: the rows that meet `wanted`.

        Args:
            wanted: (n, slots) int64, for each informable slot the place of a value, or `ANYTHING`.
        """
        places = np.where(wanted == ANYTHING, -1, self._starts + wanted)
        found: np.ndarray = np.bitwise_and.reduce(self._sets[places], axis=1)
        return found

    def discriminable(self, found: np.ndarray, dontcare: np.ndarray) -> np.ndarray:
        """(n,) bool: whether a question could tell apart two rows of each set.

        Args:
            found: (n, words) uint64, sets of rows.
            dontcare: (n, slots) bool, the informable slots that would be no use to ask about.
        """
        several = np.flatnonzero(count(found) > 1)
        differ = self._others[first_row(found[several])] & found[several, None]
        asked = ~dontcare[several][:, self._telling]
        answer = np.zeros(len(found), bool)
        answer[several] = (differ.any(2) & asked).any(1)
        return answer


def pack(sets: Iterable[int], rows: int) -> np.ndarray:
    """(n, ceil(rows / 64)) uint64: sets of rows that are ints, packed."""
    words = -(-rows // 64)
    raw = b"".join(found.to_bytes(8 * words, "little") for found in sets)
    return np.frombuffer(raw, "<u8").reshape(-1, words).astype(np.uint64)


def count(found: np.ndarray) -> np.ndarray:
    """(n,) int64: the number of rows in each of the (n, words) sets."""
    counts: np.ndarray = np.bitwise_count(found).sum(1, dtype=np.int64)
    return counts


def first_row(found: np.ndarray) -> np.ndarray:
    """(n,) int64: the first row of each of the (n, words) sets, none of them empty."""
    word = (found != 0).argmax(1)
    bits = found[np.arange(len(found)), word]
    below = np.bitwise_count((bits & -bits) - np.uint64(1))
    return word * 64 + below.astype(np.int64)
