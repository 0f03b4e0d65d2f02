"""The database of a city: seven tables, each indexed by bit sets of rows."""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate
from operator import or_
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from dialgym.errors import unknown
from dialgym.tasks.bitsets import first, value_sets
from dialgym.tasks.multiwoz.ontology import DOMAINS, UNCONSTRAINED

ANY = "?"
"""A cell that is not known: it meets every constraint."""
AFTER, BY = "leaveAt", "arriveBy"
"""The slots that are times: no earlier than, and no later than, what the user says."""
REF = "Ref"
"""The slot of a row's reference number: its place in the table, with eight digits."""
Row = Mapping[str, str]


class Taxis(NamedTuple):
    """Colours and types of taxis."""

    colors: tuple[str, ...]
    types: tuple[str, ...]


class DatabaseTable:
    """The rows of a domain, in the file's order. Immutable and shared.

    Attributes:
        rows: slot -> value, for each cell of the row; ``Ref`` among them.
        everything: the set of all rows.
    """

    rows: tuple[Row, ...]

    def __init__(self, rows: Iterable[Mapping[str, str]]) -> None:
        cells = [dict(row) for row in rows]
        self.everything = (1 << len(cells)) - 1
        self._cells, self._columns = cells, _indexed(cells, self.everything)
        self.rows = tuple(
            MappingProxyType({**row, REF: f"{place:08d}"}) for place, row in enumerate(cells)
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return DatabaseTable, (self._cells,)

    def find(self, constraints: Mapping[str, str]) -> int:
        """The set of rows that meet all `constraints`."""
        found, columns = self.everything, self._columns
        for slot, value in constraints.items():
            if value in UNCONSTRAINED:
                continue
            column = columns.get(slot)
            if column is not None:
                found &= column.find(value)
        return found

    def where(self, slot: str, test: Callable[[str], bool]) -> int:
        """The set of rows whose cell of that slot is open, or passes the test in small letters."""
        column = self._columns.get(slot)
        return self.everything if column is None else column.where(test)

    def spelling(self, slot: str, value: str) -> str:
        """The value as rows write it; as it is where none has it."""
        column = self._columns.get(slot)
        return value if column is None else column.spelling(value)


def _folded(value: str) -> str:
    """A value as it is compared: without space around it, in small letters, in one spelling."""
    value = value.strip().lower()
    return "centre" if value == "center" else value


class _Column:
    """A slot's values -> rows; a row without a known value meets every constraint."""

    def __init__(self, sets: Mapping[str, int], everything: int) -> None:
        folded: dict[str, int] = {}
        for value, found in sets.items():
            key = _folded(value)
            folded[key] = folded.get(key, 0) | found
        folded.pop(ANY, None)
        self.open = everything
        for found in folded.values():
            self.open &= ~found
        self.sets = {value: found | self.open for value, found in folded.items()}
        self._spellings = {**{_folded(value): value for value in sets}, **{v: v for v in sets}}

    def find(self, value: str) -> int:
        found = self.sets.get(value)
        return self.sets.get(_folded(value), self.open) if found is None else found

    def spelling(self, value: str) -> str:
        return self._spellings.get(value) or self._spellings.get(_folded(value), value)

    def where(self, test: Callable[[str], bool]) -> int:
        found = self.open
        for value, rows in self.sets.items():
            if test(value):
                found |= rows
        return found


class _Times(_Column):
    """A slot of times, by their order; what is no time constrains nothing."""

    def __init__(self, sets: Mapping[str, int], everything: int, after: bool) -> None:
        super().__init__(sets, everything)
        timed: dict[int, int] = {}
        for value, found in sets.items():
            time = clock(value)
            if time is not None:
                timed[time] = timed.get(time, 0) | found
        self.after, self.everything = after, everything
        self.times = sorted(timed)
        untimed = everything
        for found in timed.values():
            untimed &= ~found
        self.fitting = _cumulative([timed[time] for time in self.times], untimed, after)

    def find(self, value: str) -> int:
        time = clock(value)
        if time is None:
            return self.everything
        place = bisect_left(self.times, time) if self.after else bisect_right(self.times, time)
        return self.fitting[place]


def _cumulative(sets: Sequence[int], untimed: int, after: bool) -> list[int]:
    """By the place where a time belongs: the rows from there on, or those before."""
    if after:
        return list(accumulate(reversed(sets), or_, initial=untimed))[::-1]
    return list(accumulate(sets, or_, initial=untimed))


@lru_cache(maxsize=4096)
def clock(text: str) -> int | None:
    """A time as a number that sorts, 930 for ``09:30``; None where the text is no time."""
    hour, colon, minute = text.partition(":")
    try:
        return int(hour) * 100 + int(minute.partition(":")[0]) if colon else None
    except ValueError:
        return None


def _indexed(rows: Sequence[Mapping[str, str]], everything: int) -> dict[str, _Column]:
    return {
        slot: _Times(sets, everything, slot == AFTER)
        if slot in (AFTER, BY)
        else _Column(sets, everything)
        for slot, sets in value_sets(rows).items()
    }


class CityDatabase:
    """The tables of all domains. Immutable and shared; a pickle says how to get it, if given.

    A constraint is met by an equal value, small and capital letters alike; a time by trains that
    leave no earlier (``leaveAt``) or arrive no later (``arriveBy``). Cells that are missing or
    ``?`` meet any constraint; values such as ``dontcare``, slots that a table has not and texts
    that are no time constrain nothing; ``center`` is ``centre``.

    Differs from ConvLab-2 in that ``dontcare`` holds for departments of hospitals too. As there,
    police stations meet any constraint, hospitals all but those on their department, and there is
    always one taxi.

    Args:
        tables: rows by domain.
        taxis: what they can be.
        recipe: what a pickle says: a function that gets this database, and its arguments.

    Attributes:
        tables: by domain; a table of taxis has no rows, they are drawn.
        taxis: what they can be.
        home: the city itself, by its name as a station: where most trains leave.
    """

    def __init__(
        self,
        tables: Mapping[str, Iterable[Mapping[str, str]]],
        taxis: Taxis,
        recipe: tuple[Any, ...] | None = None,
    ) -> None:
        self.tables = MappingProxyType({d: DatabaseTable(tables.get(d, ())) for d in DOMAINS})
        self.taxis, self._recipe = taxis, recipe
        stations = Counter(row.get("departure", "") for row in self.tables["train"].rows)
        self.home = stations.most_common(1)[0][0] if stations else ""

    def __reduce__(self) -> tuple[Any, ...]:
        cells = {domain: table._cells for domain, table in self.tables.items()}
        return self._recipe or (CityDatabase, (cells, self.taxis))

    def find(self, domain: str, constraints: Mapping[str, str]) -> int:
        """The set of rows of a domain that meet all `constraints`; see `domains.bitsets`.

        Raises:
            ValueError: there is no such domain.
        """
        if domain == "taxi":
            return 1
        if domain in ("hospital", "police"):
            constraints = {s: v for s, v in constraints.items() if s == "department"}
        return self.table(domain).find(constraints)

    def table(self, domain: str) -> DatabaseTable:
        """The table of a domain.

        Raises:
            ValueError: there is no such domain.
        """
        table = self.tables.get(domain)
        if table is None:
            raise unknown("domain", domain, self.tables)
        return table

    def rows(self, domain: str) -> tuple[Row, ...]:
        """The rows of a domain, in the file's order; none of taxis."""
        return self.table(domain).rows

    def count(self, domain: str, constraints: Mapping[str, str]) -> int:
        """Number of rows that meet all `constraints`."""
        return self.find(domain, constraints).bit_count()

    def first(self, domain: str, constraints: Mapping[str, str]) -> Row | None:
        """The first row that meets all `constraints`; None for taxis, and where there is none."""
        found = 0 if domain == "taxi" else self.find(domain, constraints)
        return self.rows(domain)[first(found)] if found else None

    def where(self, domain: str, slot: str, test: Callable[[str], bool]) -> int:
        """The set of rows whose cell is open, or passes the test (given in small letters)."""
        return 1 if domain == "taxi" else self.table(domain).where(slot, test)

    def taxi(self, rng: np.random.Generator) -> dict[str, str]:
        """A taxi: ``car type``, ``color`` and ``phone``; takes 13 uniform numbers."""
        color, kind, *digits = rng.random(13).tolist()
        colors, types = self.taxis
        return {
            "color": colors[int(color * len(colors))],
            "car type": types[int(kind * len(types))],
            "phone": "".join([_DIGITS[int(digit * 9)] for digit in digits]),
        }


_DIGITS = "123456789"
