"""Sets of rows as ints: bit ``r`` says whether row ``r`` is in the set.

Sets are joined by ``&``, rows left out by ``& ~`` and rows counted by ``bit_count()``.
"""

from collections.abc import Iterable, Mapping


def indices(found: int) -> list[int]:
    """The members of a set of rows, ascending."""
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
