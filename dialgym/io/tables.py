"""Rows of data: JSONL, JSON, CSV, TSV, Parquet in files, folders and zips, here or on the hub.

They are read by the standard library (Parquet by pyarrow): built-in data needs no extra package, a
row holds what it holds (there is no schema over all rows), and an error names the line. Data sets
of the hub are fetched, and then read as any folder.
"""

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from dialgym.io.archives import SPLITS, Part, limits, parts_of
from dialgym.io.cards import parts_on_card
from dialgym.io.expansion import check_parquet
from dialgym.io.files import files_in, parse_json
from dialgym.io.hub import fetch
from dialgym.io.hub import locate as find_source
from dialgym.optional import require

Row = Mapping[str, Any]
FORMATS = (".jsonl", ".json", ".csv", ".tsv", ".parquet")
BATCH = 1024
"""Rows of Parquet that are read at a time."""
LEAST_ROW = 64
"""Bytes of a row in memory, at least: so many rows are read as archives may expand to."""
FETCHED = ("*.jsonl", "*.json", "*.csv", "*.tsv", "*.parquet", "*.txt", "*.gz", "*.zip", "*.md")
"""The files that a data set of the hub is asked for."""


class Place(NamedTuple):
    """Where a row stands, for messages."""

    part: str
    number: int  # from 1
    unit: str = "row"  # or "line", where the file has lines

    def __str__(self) -> str:
        return f"{self.part}, {self.unit} {self.number}"


def read_rows(path: Path) -> Iterator[tuple[Place, Row]]:
    """The rows of a file, or of all files of rows in a folder or zip.

    Raises:
        ValueError: there is no file of rows, or one cannot be read; the message says which.
    """
    for part in _tables(parts_of(path), path, "files of rows"):
        yield from rows_of(part)


def _tables(parts: Sequence[Part], place: Path, expected: str) -> list[Part]:
    """Those of the parts that are in one of `FORMATS`; a ValueError where none is."""
    tables = [part for part in parts if part.suffix in FORMATS]
    if not tables:
        got = ", ".join(part.name for part in parts[:5]) or "nothing"
        endings = ", ".join(FORMATS)
        raise ValueError(f"data {str(place)!r}: expected {expected} ({endings}); got {got}.")
    return tables


def rows_of(part: Part) -> Iterator[tuple[Place, Row]]:
    """The rows of one file, by the format that its ending names.

    Raises:
        ValueError: the file, or a row of it, cannot be read; the message says which.
    """
    readers = {".jsonl": _jsonl, ".json": _json, ".csv": _csv, ".tsv": _csv, ".parquet": _parquet}
    for place, row in readers[part.suffix](part):
        if not isinstance(row, Mapping):
            raise ValueError(f"{place}: expected an object with names; got {str(row)[:60]!r}.")
        yield place, row


def _jsonl(part: Part) -> Iterator[tuple[Place, Any]]:
    for number, line in part.lines():
        place = Place(part.name, number, "line")
        yield place, parse_json(line, str(place))


def _json(part: Part) -> Iterator[tuple[Place, Any]]:
    content = parse_json(part.text(), part.name)
    if not isinstance(content, list):
        raise ValueError(f"{part.name}: expected a list of rows; got {type(content).__name__}.")
    return _numbered(part, content)


def _csv(part: Part) -> Iterator[tuple[Place, Any]]:
    delimiter = "\t" if part.suffix == ".tsv" else ","
    rows = csv.DictReader(io.StringIO(part.text(), newline=""), delimiter=delimiter)
    try:
        for row in rows:
            yield Place(part.name, rows.line_num, "line"), row
    except csv.Error as error:
        kind = part.suffix[1:].upper()
        raise ValueError(
            f"{part.name}: expected {kind} ({error}). JSONL takes any text."
        ) from error


def _parquet(part: Part) -> Iterator[tuple[Place, Any]]:
    pyarrow = require("pyarrow", "data", part.name)
    parquet = require("pyarrow.parquet", "data", part.name)
    content, most = part.read(), limits().expanded // LEAST_ROW
    try:
        count = check_parquet(io.BytesIO(content), part.name, len(content))
        if count > most:
            raise ValueError(f"{part.name}: {count:,} rows; at most {most:,}.")
        batches = parquet.ParquetFile(io.BytesIO(content)).iter_batches(BATCH)
        yield from _numbered(part, (row for batch in batches for row in batch.to_pylist()))
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{part.name}: expected a Parquet file ({error}).") from error


def _numbered(part: Part, rows: Iterable[Any]) -> Iterator[tuple[Place, Any]]:
    return ((Place(part.name, number), row) for number, row in enumerate(rows, 1))


def all_rows(place: Path, parts: Sequence[Part], expected: str) -> Iterator[tuple[Place, str, Row]]:
    """Place, split and row of all that data holds; its files are `parts`.

    A row may name its split as ``split`` or ``data_split``, else the folder's card does (see
    `dialgym.io.cards`), else the file's name or folder, else it is ``train``.

    Raises:
        ValueError: there is no file of rows, which `expected` describes; or one is broken.
    """
    chosen, splits = parts_on_card(parts, str(place))
    for part in _tables(chosen, place, expected):
        said = splits.get(part.name) or part.split or "train"
        for where, row in rows_of(part):
            own = row.get("split") or row.get("data_split") or said
            yield where, SPLITS.get(str(own), str(own)), row


def first(row: Row, names: Sequence[str]) -> Any:
    """The value of the first of the names that the row has; None where it has none."""
    return next((row[name] for name in names if row.get(name) is not None), None)


def locate(data: Any, what: str, built_in: bool = True, patterns: Sequence[str] = FETCHED) -> Path:
    """Where data lies: an existing path, or the folder into which it is fetched from the hub.

    Args:
        data: a path, ``hf:NAME`` or ``hf:NAME@REVISION``.
        what: the task, for messages.
        built_in: whether there is data without it, which a message tells.
        patterns: of the files that a data set of the hub is asked for.

    Raises:
        ValueError: there is no such file or folder, or nothing that could be fetched.
    """
    instead = ", or leave it out for the built-in data" if built_in else ""
    place = find_source(data, f"data of {what}", instead)
    if isinstance(place, Path):
        return place
    return fetch(place, f"data of {what}", patterns, "dataset")


def fingerprint(place: Path) -> str:
    """What tells one state of the data from another: path, and times and sizes of its files."""
    files = files_in(place) if place.is_dir() else [place]
    stats = [(str(file), (s := file.stat()).st_mtime_ns, s.st_size) for file in files]
    return sha256(repr((str(place), stats)).encode()).hexdigest()[:24]
