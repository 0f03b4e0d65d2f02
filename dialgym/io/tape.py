"""Tapes: recorded answers of language models, which are played again without asking anybody.

A tape is a text file, one JSON record a line, that is only ever appended to. A record is found by
its key: the hash of the request, of a number drawn in the dialogue and of the turn, so that equal
requests in two dialogues, or in two epochs, are two records, and a dialogue that is begun again
hears what it heard.
"""

import hashlib
import json
import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from dialgym.errors import one_of
from dialgym.io.files import check_regular, explained

MODES = ("record", "replay")
"""Modes of a tape: what it lacks is asked for and recorded, or is an error."""
KIND = "dialgym tape 1"
"""Value of the field ``tape`` of each record."""


class TapeMissError(LookupError):
    """A replayed tape has no answer to a request."""


class Tape:
    """Answers by their keys, in memory and in a file.

    In mode ``record`` it goes on where an earlier process ended, however that did: what is there
    is not asked again. Several processes may record on one tape. A line that was never finished
    counts as not there.

    Args:
        path: of the file; its folder must exist.
        mode: one of `MODES`.

    Attributes:
        torn: number of unfinished lines.

    Raises:
        ValueError: the mode is unknown, or the file is no tape, or a record was changed since.
        FileNotFoundError: there is nothing to replay.
    """

    def __init__(self, path: str | os.PathLike[str], mode: str = "record") -> None:
        one_of("mode", mode, MODES, f"the tape {os.fspath(path)!r}")
        self.path, self.mode = Path(path), mode
        self.torn = 0
        self._answers: dict[str, dict[str, Any]] = {}
        self._file: int | None = None
        self._lock = threading.Lock()
        if mode == "replay" or self.path.exists():
            self._read()

    @classmethod
    def opened(cls, given: "Tape | Mapping[str, Any] | str | None") -> Self | None:
        """A tape, one of what YAML spells as a mapping of its arguments, or None.

        A text is the path of one that is recorded.
        """
        if given is None or isinstance(given, cls):
            return given
        return cls(**given) if isinstance(given, Mapping) else cls(str(given))

    def __len__(self) -> int:
        return len(self._answers)

    @property
    def digest(self) -> str:
        """SHA-256 of what is on it, in whichever order that was recorded."""
        return _sha256(sorted(self._answers.items()))

    def find(self, key: str, where: str) -> dict[str, Any] | None:
        """The answer that was recorded, or None where it is to be asked for.

        Args:
            key: as of `key_of`.
            where: what asks, for errors.

        Raises:
            TapeMissError: the tape is replayed and has none.
        """
        answer = self._answers.get(key)
        if answer is None and self.mode == "replay":
            raise TapeMissError(
                f"{where}: the tape {str(self.path)!r} has no answer to this request, and nobody "
                "is asked while it is replayed. Another seed, policy, brief, model or sampling "
                "leaves what was recorded; record on (mode='record'), or replay it as it was made."
            )
        return answer

    def record(
        self, key: str, request: Mapping[str, Any], answer: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Append an answer; returns the first one of the key, which is the one that holds.

        Raises:
            OSError: it cannot be written; the message says what to do.
        """
        with self._lock:
            if key not in self._answers:
                self._append({"tape": KIND, "key": key, "request": request, "answer": answer})
                self._answers[key] = dict(answer)
            return self._answers[key]

    def close(self) -> None:
        """Close the file; the next record opens it again."""
        if self._file is not None:
            os.close(self._file)
        self._file = None

    def _append(self, record: Mapping[str, Any]) -> None:
        line = json.dumps({**record, "sum": _sha256(record)}, ensure_ascii=True) + "\n"
        with explained(self.path):
            if self._file is None:
                self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
                if self._ends_torn():
                    line = f"\n{line}"
            data = line.encode("ascii")
            if os.write(self._file, data) != len(data):
                self.close()  # the next record begins a new line
                raise OSError(f"{self.path}: a record was written in part. Is the disk full?")

    def _ends_torn(self) -> bool:
        assert self._file is not None
        size = os.fstat(self._file).st_size
        return size > 0 and os.pread(self._file, 1, size - 1) != b"\n"

    def _read(self) -> None:
        check_regular(self.path)
        with self.path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    self._keep(line, f"{self.path}, line {number}")

    def _keep(self, line: bytes, where: str) -> None:
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            self.torn += 1
            return
        if not isinstance(record, dict) or record.get("tape") != KIND:
            raise ValueError(f"{where}: expected a record of a {KIND!r}; got {line[:60]!r}.")
        said = record.pop("sum", None)
        if said != _sha256(record):
            raise ValueError(
                f"{where}: the record was changed after it was written (its checksum is "
                "another). Take the line out, and it is asked for again."
            )
        self._answers.setdefault(record["key"], record["answer"])

    def __getstate__(self) -> dict[str, Any]:
        """Without the open file."""
        return {**vars(self), "_file": None, "_lock": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=threading.Lock())


def key_of(request: Mapping[str, Any], drawn: int, turn: int) -> str:
    """Key of a request in a dialogue: a SHA-256 in hexadecimal.

    Args:
        request: what is asked: model, messages, sampling.
        drawn: number drawn by the dialogue's generator.
        turn: number of the turn, from 0.
    """
    return _sha256([request, drawn, turn])


def _sha256(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()
