"""Splits as ILQL has them: files of row numbers beside the rows, ``train_idxs.json`` and so on."""

from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from dialgym.io.archives import SPLITS, ArchiveMember
from dialgym.io.files import parse_json
from dialgym.io.tables import Row, RowLocation, all_rows

ENDING = "_idxs.json"
FIRST = "comments_positive"
"""The file whose rows are numbered first; the others follow by name."""


def rows_by_index(
    place: Path, parts: Sequence[ArchiveMember], expected: str
) -> Iterator[tuple[RowLocation, str, Row]]:
    """As `sources.all_rows`, by the splits of the ``*_idxs.json`` among the parts if there are any.

    Their numbers count the rows of all other files, those of ``comments_positive`` first. A row
    that no file numbers is of no split, and left out.

    Raises:
        ValueError: as `all_rows`; or such a file is no list of numbers of rows.
    """
    found = [part for part in parts if part.name.endswith(ENDING)]
    rows = sorted((part for part in parts if part not in found), key=_order)
    if not found:
        return all_rows(place, parts, expected)
    return _chosen(all_rows(place, rows, expected), {_split(p): _numbers(p) for p in found}, place)


def _order(part: ArchiveMember) -> bool:
    return not PurePosixPath(part.name).name.startswith(FIRST)


def _split(part: ArchiveMember) -> str:
    name = PurePosixPath(part.name).name.removesuffix(ENDING)
    return SPLITS.get(name, "validation" if name == "eval" else name)


def _numbers(part: ArchiveMember) -> frozenset[int]:
    numbers = parse_json(part.text(), part.name)
    if not isinstance(numbers, list) or any(type(n) is not int or n < 0 for n in numbers):
        raise ValueError(f"{part.name}: expected a list of numbers of rows, from 0.")
    return frozenset(numbers)


def _chosen(
    rows: Iterator[tuple[RowLocation, str, Row]], splits: dict[str, frozenset[int]], place: Path
) -> Iterator[tuple[RowLocation, str, Row]]:
    count = 0
    for number, (where, _, row) in enumerate(rows):
        count = number + 1
        for split, numbers in splits.items():
            if number in numbers:
                yield where, split, row
    for split, numbers in splits.items():
        if numbers and max(numbers) >= count:
            raise ValueError(
                f"data {str(place)!r}: the numbers of the split {split!r} go up to {max(numbers)}, "
                f"but there are {count} rows. Give the files that they were made for."
            )
