"""Sets of rows of a large database: of each value its rows, and of each row its value.

As a bit set of `bitsets`, a set of a few rows among a million is as long as one of them all. Here
sets are joined by looking the rows of the smaller one up in the other; what can be asked of both
kinds is the same.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

LARGE = 2**16
"""Rows from which on a database has these sets."""
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
        """How many rows it has."""
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
"""A set of rows: an int of `bitsets`, or a `RowSet` in a large database."""
