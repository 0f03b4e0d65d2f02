"""The database of a domain, indexed by bit sets of rows: one for each slot and value."""

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from functools import cached_property
from itertools import chain
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from dialgym.errors import unknown
from dialgym.tasks.bitsets import LARGE, ColumnSets, Found, RowSet, first, indices
from dialgym.tasks.slot_filling.domain.ontology import DONTCARE, NAME, Ontology

MISSING = "not available"
"""A cell whose value is not known; it meets no constraint."""
REMEMBERED = 4096
"""Sets of rows that a large database remembers, by the constraints that they meet."""


class EntityDatabase:
    """The rows of a domain, in the table's order. Immutable and shared.

    A set of rows is an int, see `bitsets`, or in a large database a `RowSet`.

    Attributes:
        rows: slot -> value, for every column.
        ontology: of the domain.
        everything: the set of all rows.
    """

    rows: tuple[Mapping[str, str], ...]

    def __init__(self, rows: Iterable[Mapping[str, str]], ontology: Ontology) -> None:
        self.rows = tuple(MappingProxyType(dict(row)) for row in rows)
        self.ontology = ontology
        self._large = len(self.rows) >= LARGE
        size = len(self.rows)
        self.everything: Any = RowSet.of_all(size) if self._large else (1 << size) - 1
        self._columns = tuple(dict.fromkeys(chain.from_iterable(self.rows)))
        self._sets: dict[str, ColumnSets] = {}
        self._joined: dict[tuple[tuple[str, str], ...], RowSet] = {}  # by constraints

    def __reduce__(self) -> tuple[Any, ...]:
        return EntityDatabase, ([dict(row) for row in self.rows], self.ontology)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def columns(self) -> tuple[str, ...]:
        """The slots that rows have cells for."""
        return self._columns

    def texts(self, slot: str) -> set[str]:
        """The texts of a column, each once."""
        return {row[slot] for row in self.rows if slot in row}

    def bits(self, slot: str, value: str) -> Any:
        """The set of rows that have `value`, or of all for ``dontcare``.

        Raises:
            ValueError: the database has no such slot.
        """
        if value == DONTCARE:
            return self.everything
        return (self._sets.get(slot) or self._column(slot))[value]

    def _column(self, slot: str) -> ColumnSets:
        """The sets of a column, which are made once that is asked for."""
        if slot not in self._sets:
            if slot not in self._columns:
                raise unknown("slot", slot, self._columns, "the database")
            self._sets[slot] = ColumnSets([row.get(slot) for row in self.rows], slot, self._large)
        return self._sets[slot]

    def match_bits(self, constraints: Mapping[str, str]) -> Any:
        """The set of rows that meet all `constraints`."""
        if self._large:
            return self._join(tuple(constraints.items()))
        found = self.everything
        for slot, value in constraints.items():
            found &= self.bits(slot, value)
        return found

    def _join(self, constraints: tuple[tuple[str, str], ...]) -> RowSet:
        """The same in a large database, where what some of the constraints leave is remembered."""
        if not constraints:
            return self.everything
        found = self._joined.get(constraints)
        if found is None:
            found = self._join(constraints[:-1]) & self.bits(*constraints[-1])
            if len(self._joined) >= REMEMBERED:
                self._joined.clear()
            self._joined[constraints] = found
        return found

    def matches(self, constraints: Mapping[str, str]) -> np.ndarray:
        """(k,) int64, ascending: the rows that meet all `constraints`; ``dontcare`` is none."""
        return np.array(indices(self.match_bits(constraints)), np.int64)

    def discriminable(self, found: Found, dontcare: Iterable[str] = ()) -> bool:
        """Return True if a question could tell apart two rows of the set `found`.

        That is, whether they differ on an informable slot that is not in `dontcare`; `name` and
        ``price`` do not count.
        """
        if found.bit_count() < 2:
            return False
        row = self.rows[first(found)]
        asked = (s for s in self.telling if s not in dontcare)
        return any(found & ~self._column(slot)[row[slot]] for slot in asked)

    @cached_property
    def telling(self) -> tuple[str, ...]:
        """The informable slots that rows can be told apart by: all but `name` and ``price``."""
        return tuple(s for s in self.ontology.informable if s not in (NAME, "price"))

    @cached_property
    def codes(self) -> np.ndarray:
        """(rows, slots) int64: the index of each informable value in the ontology, or -1."""
        index = self.ontology.index
        columns = [[place.get(row[s], -1) for row in self.rows] for s, place in index.items()]
        return np.array(columns, np.int64).T.reshape(len(self.rows), len(index))

    def entropy(self, slot: str) -> float:
        """The entropy, in nats, of a column's values over the rows."""
        p = self._column(slot).sizes / len(self.rows)
        return float(-(p * np.log(p)).sum())


def read_database(path: str | PathLike[str], ontology: Ontology) -> EntityDatabase:
    """The database of an SQLite file in PyDial's form: one table, named after the domain.

    A cell that differs from a value of the ontology only in case is taken for that value, and an
    empty one for ``not available``.

    Raises:
        ValueError: the file cannot be read as SQLite, has no such table, the table has no rows,
            or lacks the column of a slot.
    """
    path = Path(path)
    columns, cells = _read_table(path, ontology.domain)
    lacking = [slot for slot in _wanted(ontology) if slot not in columns]
    if lacking:
        raise _bad(path, f"a column for each slot of {ontology.domain}", f"none for {lacking[0]!r}")
    if not cells:
        raise _bad(path, f"rows in the table {ontology.domain!r}", "an empty table")
    return of_columns(columns, cells, ontology)


def of_columns(
    columns: Sequence[str], cells: Sequence[Sequence[Any]], ontology: Ontology
) -> EntityDatabase:
    """Make the database of a table's cells, spelt as the ontology spells them."""
    spelling = {slot: _spellings(values) for slot, values in ontology.informable.items()}
    spelt = [
        _cells([row[place] for row in cells], spelling.get(slot, {}))
        for place, slot in enumerate(columns)
    ]
    return EntityDatabase((dict(zip(columns, row)) for row in zip(*spelt)), ontology)


def _spellings(values: Iterable[str]) -> dict[str, str]:
    """Representative of each value: itself before what differs from another only in case."""
    return {**{value.lower(): value for value in values}, **{value: value for value in values}}


def _wanted(ontology: Ontology) -> list[str]:
    return list(dict.fromkeys([*ontology.informable, *ontology.requestable]))


def _cells(cells: Sequence[Any], spelling: Mapping[str, str]) -> list[str]:
    """The texts of a column; each is looked up once, and equal ones are one object."""
    if set(map(type, cells)) != {str}:
        cells = [MISSING if cell is None or cell == "" else str(cell) for cell in cells]
    return list(map(_Spelt(spelling).__getitem__, cells))


class _Spelt(dict[str, str]):
    """Spelling of each text in the ontology, itself where that does not list it."""

    def __init__(self, known: Mapping[str, str]) -> None:
        super().__init__({"": MISSING})
        self._known = known

    def __missing__(self, text: str) -> str:
        known = self._known
        found = self[text] = known.get(text) or known.get(text.lower(), text)
        return found


def _read_table(path: Path, name: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    """The columns and rows of a table; the file is opened read-only."""
    if not path.is_file():
        raise _bad(path, "an SQLite file", "no file")
    uri = f"{path.resolve().as_uri()}?mode=ro&immutable=1"
    try:
        with closing(sqlite3.connect(uri, uri=True)) as connection:
            return _read_rows(connection, path, name)
    except sqlite3.DatabaseError as error:
        raise _bad(path, "an SQLite file", str(error)) from error


def _read_rows(
    connection: sqlite3.Connection, path: Path, name: str
) -> tuple[list[str], list[tuple[Any, ...]]]:
    tables = [row[0] for row in connection.execute(_TABLES)]
    if name not in tables:
        raise _bad(path, f"a table {name!r}", ", ".join(map(repr, tables)) or "no table")
    quoted = name.replace('"', '""')
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST)
    if any(hidden for *_, hidden in connection.execute(f'PRAGMA table_xinfo("{quoted}")')):
        raise _bad(path, f"a table {name!r} of what is in the file", "columns that are computed")
    cursor = connection.execute(f'SELECT * FROM "{quoted}"')
    return [column[0] for column in cursor.description], cursor.fetchall()


LONGEST = 1_000_000
"""Bytes of a cell or a row."""
_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table'"


def _bad(path: Path, expected: str, got: str) -> ValueError:
    return ValueError(f"database {str(path)!r}: expected {expected}; got {got}.")
