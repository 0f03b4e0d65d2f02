"""Tables of data: JSONL, JSON, CSV, TSV, Parquet in files, folders and zips, here or on the hub.

They are read by the standard library (Parquet by pyarrow): built-in data needs no extra package, a
row holds what it holds (there is no schema over all rows), and an error names the line. Data sets
of the hub are fetched, and then read as any folder.
"""

import csv
import io
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path, PurePath
from typing import Any, NamedTuple

import numpy as np

from dialgym.io.archives import PARQUET_RATIO, SPLITS, VARIABLE, ArchiveMember, bound, parts_of
from dialgym.io.dataset_card import parts_on_card
from dialgym.io.files import files_in, parse_json
from dialgym.io.hub import fetch
from dialgym.io.hub import locate as find_source
from dialgym.optional import require

Row = Mapping[str, Any]
FORMATS = (".jsonl", ".json", ".csv", ".tsv", ".parquet")
DELIMITERS = {"CSV": ",", "TSV": "\t"}
BATCH = 1024
"""Rows of Parquet that are read at a time."""
LEAST_ROW, LEAST_VALUE = 64, 4
"""Bytes of a row and of a value of Parquet in memory, at least."""
FETCHED = ("*.jsonl", "*.json", "*.csv", "*.tsv", "*.parquet", "*.txt", "*.gz", "*.zip", "*.md")
"""Patterns of the files that are fetched of a data set of the hub."""


class RowLocation(NamedTuple):
    """Location of a row, for messages."""

    part: str
    number: int  # from 1
    unit: str = "row"  # or "line", where the file has lines

    def __str__(self) -> str:
        return f"{self.part}, {self.unit} {self.number}"


def read_rows(path: Path) -> Iterator[tuple[RowLocation, Row]]:
    """Iterate over the rows of a file, or of all files of rows in a folder or zip.

    Raises:
        ValueError: there is no file of rows, or one cannot be read; the message says which.
    """
    for part in _tables(parts_of(path), path, "files of rows"):
        yield from rows_of(part)


def _tables(parts: Sequence[ArchiveMember], path: Path, expected: str) -> list[ArchiveMember]:
    """Select the files that are in one of `FORMATS`; a ValueError if none is."""
    tables = [part for part in parts if part.suffix in FORMATS]
    if not tables:
        got = ", ".join(part.name for part in parts[:5]) or "nothing"
        endings = ", ".join(FORMATS)
        raise ValueError(f"data {str(path)!r}: expected {expected} ({endings}); got {got}.")
    return tables


def rows_of(part: ArchiveMember) -> Iterator[tuple[RowLocation, Row]]:
    """Iterate over the rows of one file, by the format that its ending names.

    Raises:
        ValueError: the file, or a row of it, cannot be read; the message says which.
    """
    readers = {".jsonl": _jsonl, ".json": _json, ".csv": _csv, ".tsv": _csv, ".parquet": _parquet}
    for location, row in readers[part.suffix](part):
        if not isinstance(row, Mapping):
            raise ValueError(f"{location}: expected an object with names; got {str(row)[:60]!r}.")
        yield location, row


def _jsonl(part: ArchiveMember) -> Iterator[tuple[RowLocation, Any]]:
    for number, line in part.lines():
        location = RowLocation(part.name, number, "line")
        yield location, parse_json(line, str(location))


def _json(part: ArchiveMember) -> Iterator[tuple[RowLocation, Any]]:
    content = parse_json(part.text(), part.name)
    if not isinstance(content, list):
        raise ValueError(f"{part.name}: expected a list of rows; got {type(content).__name__}.")
    return _numbered(part, content)


def _csv(part: ArchiveMember) -> Iterator[tuple[RowLocation, Any]]:
    text, kind = part.text(), part.suffix[1:].upper()
    lines = _cells(text, quoted=kind == "CSV" or _is_quoted(text), delimiter=DELIMITERS[kind])
    try:
        head: list[str] = next(filter(None, lines), [])
        width, warned = len(head), False
        _check_head(RowLocation(part.name, lines.line_num, "line"), head)
        for cells in filter(_is_no_blank, lines):
            location = RowLocation(part.name, lines.line_num, "line")
            if len(cells) < width:
                raise ValueError(_ragged(location, head, cells, kind))
            if len(cells) > width:
                if not warned:
                    told = _ragged(location, head, cells, kind)
                    said = f"{told} What is too much is read as the last column's."
                    warnings.warn(said, stacklevel=2)
                    warned = True
                cells = [*cells[: width - 1], DELIMITERS[kind].join(cells[width - 1 :])]
            yield location, dict(zip(head, cells))
    except csv.Error as error:
        raise ValueError(
            f"{part.name}: expected {kind} (line {lines.line_num}: {error}). JSONL takes any text."
        ) from error


def _cells(text: str, quoted: bool, delimiter: str) -> Any:
    """Make a reader of the cells of each line, with the number of the line."""
    csv.field_size_limit(max(csv.field_size_limit(), len(text)))  # a cell may be a whole dialogue
    lines = io.StringIO(text, newline="")
    options: Any = {"strict": True} if quoted else {"quoting": csv.QUOTE_NONE}
    return csv.reader(lines, delimiter=delimiter, **options)


def _is_quoted(text: str) -> bool:
    """Return True if the quotes of a TSV stand around cells, and none swallows lines of rows."""
    try:
        cells = [cell for row in _cells(text, quoted=True, delimiter="\t") for cell in row]
    except csv.Error:
        return False
    return not any("\t" in cell and "\n" in cell for cell in cells)


def _check_head(location: RowLocation, head: Sequence[str]) -> None:
    """Raise a ValueError if two columns have one name, or semicolons stand between them."""
    if len(head) == 1 and ";" in head[0]:
        raise ValueError(
            f"{location}: expected columns with commas or tabs between them, by the file's ending; "
            f"got {head[0][:60]!r}. Save it without semicolons, or as JSONL."
        )
    twice = [name for name, count in Counter(head).items() if name and count > 1]
    if twice:
        raise ValueError(
            f"{location}: expected columns with names of their own; got {twice[0]!r} "
            f"{head.count(twice[0])} times. Rename or remove one."
        )


def _is_no_blank(cells: Sequence[str]) -> bool:
    return any(cell.strip() for cell in cells)


def _ragged(location: RowLocation, head: Sequence[str], cells: Sequence[str], kind: str) -> str:
    """The message for a row with more or fewer cells than there are columns."""
    mend = (
        "Put a text with commas into quotes, and double the quotes within it"
        if kind == "CSV"
        else "Take tabs and ends of lines out of the texts"
    )
    return (
        f"{location}: expected a cell for each of the first row's {len(head)} columns "
        f"({', '.join(head)[:80]}); got {len(cells)} cells, the last {cells[-1][:40]!r}. "
        f"{mend}, or write JSONL, which takes any text."
    )


def _parquet(part: ArchiveMember) -> Iterator[tuple[RowLocation, Any]]:
    pyarrow = require("pyarrow", "data", part.name)
    parquet = require("pyarrow.parquet", "data", part.name)
    content, most = part.read(), bound("expanded") // LEAST_ROW
    try:
        count = check_parquet(io.BytesIO(content), part.name, len(content))
        if count > most:
            raise ValueError(f"{part.name}: {count:,} rows; at most {most:,}.")
        batches = parquet.ParquetFile(io.BytesIO(content)).iter_batches(BATCH)
        yield from _numbered(part, (row for batch in batches for row in batch.to_pylist()))
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{part.name}: expected a Parquet file ({error}).") from error


def _numbered(part: ArchiveMember, rows: Iterable[Any]) -> Iterator[tuple[RowLocation, Any]]:
    return ((RowLocation(part.name, number), row) for number, row in enumerate(rows, 1))


def all_rows(
    path: Path, parts: Sequence[ArchiveMember], expected: str
) -> Iterator[tuple[RowLocation, str, Row]]:
    """Iterate over location, split and row of all data in the files `parts`.

    A row may name its split as ``split`` or ``data_split``, else the folder's card does (see
    `parts_on_card`), else the file's name or folder, else it is ``train``.

    Raises:
        ValueError: there is no file of rows, which `expected` describes; or one is broken.
    """
    chosen, splits = parts_on_card(parts, str(path))
    for part in _tables(chosen, path, expected):
        said = splits.get(part.name) or part.split or "train"
        for where, row in rows_of(part):
            own = row.get("split") or row.get("data_split") or said
            yield where, SPLITS.get(str(own), str(own)), row


def first(row: Row, names: Sequence[str]) -> Any:
    """The first value that the row has under one of the names; None where all are empty."""
    found = (row.get(name) for name in names)
    return next((v for v in found if v is not None and not (isinstance(v, str) and not v)), None)


def locate(data: Any, what: str, built_in: bool = True, patterns: Sequence[str] = FETCHED) -> Path:
    """Locate data: an existing path, or the folder into which it is fetched from the hub.

    Args:
        data: a path, ``hf:NAME`` or ``hf:NAME@REVISION``.
        what: the task, for messages.
        built_in: there is data without it, which the message names.
        patterns: of the files that are fetched of a data set of the hub.

    Raises:
        ValueError: there is no such file or folder, or nothing that could be fetched.
    """
    instead = ", or leave it out for the built-in data" if built_in else ""
    located = find_source(data, f"data of {what}", instead)
    if isinstance(located, Path):
        return located
    return fetch(located, f"data of {what}", patterns, "dataset")


def fingerprint(path: Path) -> str:
    """Hash the path, times and sizes of the files of data, which differ between its states."""
    files = files_in(path) if path.is_dir() else [path]
    stats = [(str(file), (s := file.stat()).st_mtime_ns, s.st_size) for file in files]
    return sha256(repr((str(path), stats)).encode()).hexdigest()[:24]


# Parquet


def check_parquet(source: Any, name: str, size: int, ratio: int = PARQUET_RATIO) -> int:
    """Count the rows of a Parquet file, after a check of its size in memory.

    Repeated values stand once in such a file: ten kilobytes can hold a text of 100 kB a million
    times. So the dictionaries of texts are read first, without the texts of the rows.

    Args:
        source: a path, or a file that is open.
        name: of the file, for messages.
        size: of the file, in bytes.
        ratio: in the place of `PARQUET_RATIO`, for files that are mapped into memory.

    Raises:
        ValueError: it would be more in memory than its size and the bound of archives allow.
        pyarrow.ArrowException, OSError: it is no Parquet file.
    """
    parquet = require("pyarrow.parquet", "data", name)
    most = max(bound("expanded"), ratio * size)
    metadata = parquet.ParquetFile(source).metadata
    columns = [
        (group, metadata.row_group(group).column(i))
        for group in range(metadata.num_row_groups)
        for i in range(metadata.row_group(group).num_columns)
    ]
    expanded = sum(max(c.total_uncompressed_size, LEAST_VALUE * c.num_values) for _, c in columns)
    _check_size(expanded, name, most)
    texts = [(g, c.path_in_schema) for g, c in columns if c.physical_type == "BYTE_ARRAY"]
    by_dictionary = parquet.ParquetFile(source, read_dictionary=sorted({path for _, path in texts}))
    for group, path in texts:
        arrays = by_dictionary.read_row_group(group, columns=[path]).column(0).chunks
        expanded += sum(_text_bytes(array) for array in arrays)
        _check_size(expanded, name, most)
    rows: int = metadata.num_rows
    return rows


def _text_bytes(array: Any) -> int:
    """Bytes of the texts of one column in memory; it may have lists and structs around them."""
    pyarrow, compute = (require(f"pyarrow{part}", "data", "Parquet") for part in ("", ".compute"))
    if pyarrow.types.is_map(array.type):
        return _text_bytes(array.keys) + _text_bytes(array.items)
    if pyarrow.types.is_nested(array.type):
        inner = array.flatten()
        return sum(map(_text_bytes, inner)) if isinstance(inner, list) else _text_bytes(inner)
    if not pyarrow.types.is_dictionary(array.type):
        return int(array.nbytes)
    sizes = compute.binary_length(array.dictionary).fill_null(0).to_numpy(zero_copy_only=False)
    used = array.indices.drop_null().to_numpy(zero_copy_only=False)
    if len(used) and not 0 <= used.min() <= used.max() < len(sizes):
        raise pyarrow.ArrowInvalid("values that its dictionary does not have")
    return int(np.bincount(used, minlength=len(sizes)).astype(np.float64) @ sizes)


def _check_size(expanded: int, name: str, most: int) -> None:
    if expanded > most:
        raise ValueError(
            f"{PurePath(name).name}: it would be more than {most:,} bytes in memory, out of all "
            f"proportion to its size. If you trust whoever made it, set {VARIABLE}EXPANDED."
        )
