"""What people think of replies, as files that the trainer of reward models reads.

``preferences.jsonl`` has a line for each comparison (``context``, ``chosen``, ``rejected``),
``scores.jsonl`` one for each reply that was given a number (``context``, ``reply``, ``score``),
``ties.jsonl`` the comparisons that nobody won. A file is written anew at each rating, whole or not
at all, so that a kill loses no more than the rating in flight; what lies there is gone on with.
"""

import json
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from dialgym.io.files import parse_json, write_text
from dialgym.io.locks import PATIENCE, locked

PREFERENCES, SCORES, TIES = "preferences", "scores", "ties"
KINDS = (PREFERENCES, SCORES, TIES)
NEEDED = {
    PREFERENCES: ("key", "context", "chosen", "rejected"),
    SCORES: ("key", "context", "reply", "score"),
    TIES: ("key", "context", "replies"),
}
LOWEST, HIGHEST = 1, 5


class Ratings:
    """The ratings in a folder, by a key of what was rated: a second one replaces the first.

    Several viewers may write into one folder.

    Args:
        folder: where the files lie, or will.

    Raises:
        ValueError: a file there is of another kind.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._mutex = threading.Lock()  # a file's lock is one of processes
        for kind in KINDS:
            self.read(kind)

    def file(self, kind: str) -> Path:
        """Where the ratings of a kind lie."""
        return self.folder / f"{kind}.jsonl"

    def read(self, kind: str) -> dict[str, dict[str, Any]]:
        """The ratings of a kind by key."""
        file = self.file(kind)
        if not file.is_file():
            return {}
        rows = _rows(file, NEEDED[kind])
        return {str(row["key"]): row for row in rows}

    def put(self, kind: str, row: Mapping[str, Any]) -> None:
        """Add a rating; what was compared has one verdict, a preference or a tie.

        Raises:
            OSError: the folder cannot be written.
        """
        with self._mutex, locked(self.folder, PATIENCE):
            if kind != SCORES:
                self._drop(TIES if kind == PREFERENCES else PREFERENCES, str(row["key"]))
            self._write(kind, {**self.read(kind), str(row["key"]): dict(row)})

    def remove(self, key: str) -> bool:
        """Take a rating back; whether there was one."""
        if not self.folder.is_dir():
            return False
        with self._mutex, locked(self.folder, PATIENCE):
            found = [self._drop(kind, key) for kind in KINDS]
        return True in found

    def counts(self) -> dict[str, Any]:
        """How many there are of each kind, and where."""
        return {**{kind: len(self.read(kind)) for kind in KINDS}, "folder": str(self.folder)}

    def _drop(self, kind: str, key: str) -> bool:
        rows = self.read(kind)
        if key not in rows:
            return False
        del rows[key]
        self._write(kind, rows)
        return True

    def _write(self, kind: str, rows: Mapping[str, Mapping[str, Any]]) -> None:
        write_text(self.file(kind), "".join(f"{json.dumps(row)}\n" for row in rows.values()))


def _rows(file: Path, needed: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(file.read_text("utf-8").splitlines(), 1):
        where = f"{str(file)!r}, line {number}"
        row = parse_json(line, where)
        missing = [name for name in needed if not isinstance(row, dict) or name not in row]
        if missing:
            raise ValueError(
                f"{where}: expected a rating of the viewer with {', '.join(needed)}; it lacks "
                f"{', '.join(missing)}. Give another folder (--ratings)."
            )
        yield row
