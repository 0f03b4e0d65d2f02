"""Sets of rows of a database, as bits or as lists.

A set is an int whose bit ``r`` is 1 where row ``r`` is in it. Sets are joined by ``&``, rows left
out by ``& ~``, rows counted by ``bit_count()``. In a large database, where an int of a few rows is
as long as one of all, a set is a `RowSet` with the same operations: a list of rows, joined by a
look at the values of the smaller one's rows.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

LARGE = 2**16
"""Rows from which on a database has sets of rows as lists."""
LONG, FEW = 4096, 8
"""Rows from which on a set is read as an array; members up to which it is not."""
KEPT = 2**26
"""Bytes of sets that a column remembers."""
Test = Callable[[np.ndarray], np.ndarray]


class RowSet:
    """A set of rows. Immutable.

    Args:
        rows: (k,) int32, ascending.
        holds: whether each of some rows (m,) is in the set: (m,) bool.
        key: what the set was made by; sets with one key are the same.
        whole: whether no row is missing.
    """

    __slots__ = ("holds", "key", "rows", "whole")

    def __init__(
        self, rows: np.ndarray, holds: Test | None, key: tuple[Any, ...], whole: bool = False
    ) -> None:
        self.rows, self.key, self.whole = rows, key, whole
        self.holds = holds or self._holds

    @classmethod
    def of_all(cls, size: int) -> "RowSet":
        """All rows of a database."""
        return cls(np.arange(size, dtype=np.int32), lambda rows: np.ones(len(rows), bool), (), True)

    def _holds(self, rows: np.ndarray) -> np.ndarray:
        if not len(self.rows):
            return np.zeros(len(rows), bool)
        places = np.minimum(np.searchsorted(self.rows, rows), len(self.rows) - 1)
        return np.asarray(self.rows[places] == rows)

    def __and__(self, other: "RowSet | _Without") -> "RowSet":
        if isinstance(other, _Without):
            kept = self.rows[~other.left_out.holds(self.rows)]
            return RowSet(kept, None, (*self.key, ("not", other.left_out.key)))
        if self.whole or other.whole:
            return other if self.whole else self
        small, large = (self, other) if len(self.rows) <= len(other.rows) else (other, self)
        return RowSet(small.rows[large.holds(small.rows)], None, (*self.key, *other.key))

    def __invert__(self) -> "_Without":
        return _Without(self)

    def bit_count(self) -> int:
        """Number of rows."""
        return len(self.rows)

    def __bool__(self) -> bool:
        return len(self.rows) > 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RowSet) and np.array_equal(self.rows, other.rows)

    def __hash__(self) -> int:
        return hash((len(self.rows), self.rows[:1].tobytes()))


class _Without:
    """All rows but those of a set, on the right of an ``&``."""

    def __init__(self, left_out: RowSet) -> None:
        self.left_out = left_out


Found = int | RowSet
"""A set of rows: an int of bits, or a `RowSet` in a large database."""


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
