"""Sets of rows as ints: bit ``r`` says whether row ``r`` is in the set.

Sets are joined by ``&``, rows left out by ``& ~`` and rows counted by ``bit_count()``.
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

LONG, FEW = 4096, 8
"""Rows from which on a set is read as an array; members up to which it is not."""
KEPT = 2**26
"""Bytes of sets that a column remembers."""


def indices(found: int) -> list[int]:
    """The members of a set of rows, ascending."""
    if found.bit_length() > LONG and found.bit_count() > FEW:
        data = found.to_bytes((found.bit_length() + 7) // 8, "little")
        bits = np.unpackbits(np.frombuffer(data, np.uint8), bitorder="little")
        return np.flatnonzero(bits).tolist()
    members = []
    while found:
        low = found & -found
        members.append(low.bit_length() - 1)
        found ^= low
    return members


def first(found: int) -> int:
    """The first row of a set that is not empty."""
    return (found & -found).bit_length() - 1


def value_sets(rows: Iterable[Mapping[str, str]]) -> dict[str, dict[str, int]]:
    """Column -> value -> the set of rows that have it."""
    sets: dict[str, dict[str, int]] = {}
    for place, row in enumerate(rows):
        for slot, value in row.items():
            column = sets.setdefault(slot, {})
            column[value] = column.get(value, 0) | 1 << place
    return sets


class ColumnSets:
    """The sets of rows that have each value of one column, made when they are asked for.

    Args:
        cells: the value of each row; None where it has none.
    """

    def __init__(self, cells: Sequence[str | None]) -> None:
        self._size, self._code = len(cells), dict[str | None, int]()
        code = self._code
        codes = np.fromiter([code.setdefault(cell, len(code)) for cell in cells], np.int32)
        self._rows = np.argsort(codes, kind="stable").astype(np.int32)
        self.sizes = np.bincount(codes, minlength=len(code))  # (values,) rows of each
        self._ends = np.cumsum(self.sizes)
        self._known: dict[str, int] = {}
        self._most = KEPT // (self._size // 8 + 64)

    def __getitem__(self, value: str) -> int:
        """The rows that have `value`; none where it is not in the column."""
        found = self._known.get(value)
        if found is None:
            found = self._found(value)
            if len(self._known) < self._most:
                self._known[value] = found
        return found

    def _found(self, value: str) -> int:
        code = self._code.get(value)
        if code is None:
            return 0
        rows = self._rows[self._ends[code] - self.sizes[code] : self._ends[code]]
        if len(rows) <= FEW:
            return sum([1 << row for row in rows.tolist()])
        bits = np.zeros(self._size, bool)
        bits[rows] = True
        return int.from_bytes(np.packbits(bits, bitorder="little").tobytes(), "little")
