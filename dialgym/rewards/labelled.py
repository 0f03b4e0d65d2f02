"""Files of labelled texts that a classifier learns from."""

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from dialgym.errors import one_of, unknown
from dialgym.rewards.base import Reply
from dialgym.rewards.trained import Example

COLUMNS = ("text", "label")
DAVIDSON = ("tweet", "class")
"""The columns of Davidson et al. (2017), Automated Hate Speech Detection."""
DAVIDSON_LEVELS = {"0": "2", "1": "1", "2": "0"}
FORMATS = (".csv", ".tsv", ".jsonl")


def read_labelled(
    path: str,
    columns: Sequence[str] | None,
    levels: Mapping[str, Any] | None,
    classes: Sequence[str],
) -> list[Example]:
    """The texts of a CSV, TSV or JSONL file with the classes that `levels` gives their labels.

    Raises:
        ValueError: the file, a column or a label is not what it should be.
    """
    place = Path(path).expanduser()
    if place.suffix not in FORMATS or not place.is_file():
        raise ValueError(
            f"expected a file of labelled texts, {', '.join(FORMATS)}; got {str(path)!r}, "
            f"which {'is no file' if not place.is_file() else 'is none of these'}."
        )
    try:
        rows = list(_rows(place))
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"{path}: expected {place.suffix} in UTF-8 ({error}).") from error
    if not rows:
        raise ValueError(f"{path}: expected labelled texts; got none.")
    text, label = columns or (DAVIDSON if set(DAVIDSON) <= set(rows[0]) else COLUMNS)
    if levels is None:
        levels = DAVIDSON_LEVELS if (text, label) == DAVIDSON else {name: name for name in classes}
    named = {str(own): str(level) for own, level in levels.items()}
    for level in named.values():
        one_of("level", level, classes, path)
    return [_example(row, text, label, named, path) for row in rows]


def _rows(path: Path) -> Iterator[Mapping[str, Any]]:
    with path.open(encoding="utf-8-sig", newline="") as lines:
        if path.suffix == ".jsonl":
            yield from (_parsed(line, path, i) for i, line in enumerate(lines, 1) if line.strip())
        else:
            yield from csv.DictReader(lines, delimiter="\t" if path.suffix == ".tsv" else ",")


def _parsed(line: str, path: Path, number: int) -> Mapping[str, Any]:
    try:
        row = json.loads(line)
    except ValueError:
        row = None
    if not isinstance(row, dict):
        raise ValueError(f"{path}, line {number}: expected an object of JSON; got {line[:60]!r}.")
    return row


def _example(
    row: Mapping[str, Any], text: str, label: str, levels: Mapping[str, str], path: str
) -> Example:
    for column in (text, label):
        if row.get(column) is None:
            raise unknown("column", column, row, path)
    own = str(row[label])
    if own not in levels:
        raise unknown("label", own, levels, path)
    return Reply(str(row[text])), levels[own]
