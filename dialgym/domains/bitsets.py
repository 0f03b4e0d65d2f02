"""Sets of rows as ints: bit ``r`` says whether row ``r`` is in the set.

Sets are joined by ``&``, rows left out by ``& ~`` and rows counted by ``bit_count()``. Those of a
large database are of another kind, of which the same can be asked: see `rowsets`.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from dialgym.domains.rowsets import Found, RowSet

LONG, FEW = 4096, 8
"""Rows from which on a set is read as an array; members up to which it is not."""
KEPT = 2**26
"""Bytes of sets that a column remembers."""


def indices(found: Found) -> list[int]:
    """The members of a set of rows, ascending."""
    if isinstance(found, RowSet):
        return found.rows.tolist()
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


def first(found: Found) -> int:
    """The first row of a set that is not empty."""
    if isinstance(found, RowSet):
        return int(found.rows[0])
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
        name: of the column.
        large: whether the sets are `RowSet`s.
    """

    def __init__(self, cells: Sequence[str | None], name: str = "", large: bool = False) -> None:
        self._name, self._large = name, large
        self._size, self._code = len(cells), dict[str | None, int]()
        code = self._code
        codes = np.fromiter([code.setdefault(cell, len(code)) for cell in cells], np.int32)
        self._rows = np.argsort(codes, kind="stable").astype(np.int32)
        self.sizes = np.bincount(codes, minlength=len(code))  # (values,) rows of each
        self._ends = np.cumsum(self.sizes)
        self._codes = codes.astype(np.min_scalar_type(len(code))) if large else None
        self._known: dict[str, Found] = {}
        self._most = KEPT // (512 if large else self._size // 8 + 64)

    def __getitem__(self, value: str) -> Any:
        """The rows that have `value`; none where it is not in the column."""
        found = self._known.get(value)
        if found is None:
            found = self._found(value)
            if len(self._known) < self._most:
                self._known[value] = found
        return found

    def _found(self, value: str) -> Found:
        code, codes = self._code.get(value), self._codes
        if code is None:
            return 0 if codes is None else RowSet(self._rows[:0], None, ((self._name, value),))
        rows = self._rows[self._ends[code] - self.sizes[code] : self._ends[code]]
        if codes is not None:
            return RowSet(rows, lambda some: codes[some] == code, ((self._name, value),))
        if len(rows) <= FEW:
            return sum([1 << row for row in rows.tolist()])  # noqa: C419  faster
        bits = np.zeros(self._size, bool)
        bits[rows] = True
        return int.from_bytes(np.packbits(bits, bitorder="little").tobytes(), "little")
