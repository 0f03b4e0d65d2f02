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
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

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
        FileNotFoundError: there is nothing to replay, or no folder to record in.
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
        elif not self.path.parent.is_dir():  # told before anything is asked, which costs
            raise FileNotFoundError(
                f"the tape {str(path)!r}: there is no folder {str(self.path.parent)!r} to record "
                "in. Make it, or give another path (record=PATH)."
            )

    def __len__(self) -> int:
        return len(self._answers)

    @property
    def digest(self) -> str:
        """SHA-256 of its records, whatever their order."""
        return sha256_of(sorted(self._answers.items()))

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
        data = line_of(record)
        with explained(self.path):
            if self._file is None:
                self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
                if self._ends_torn():
                    data = b"\n" + data
            if os.write(self._file, data) != len(data):
                self.close()  # the next record begins a new line
                raise OSError(f"{self.path}: a record was written in part. Is the disk full?")

    def _ends_torn(self) -> bool:
        assert self._file is not None
        size = os.fstat(self._file).st_size
        return size > 0 and os.pread(self._file, 1, size - 1) != b"\n"

    def _read(self) -> None:
        for record in read_records(self.path):
            if record is None:
                self.torn += 1
            else:
                self._answers.setdefault(record["key"], record["answer"])

    def __getstate__(self) -> dict[str, Any]:
        """Without the open file."""
        return {**vars(self), "_file": None, "_lock": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=threading.Lock())


def tape_at(
    record: str | os.PathLike[str] | None, replay: str | os.PathLike[str] | None
) -> Tape | None:
    """The tape that is recorded or replayed; None for neither.

    Raises:
        ValueError: both are given, or as of `Tape`.
        FileNotFoundError: there is nothing to replay.
    """
    if record is not None and replay is not None:
        raise ValueError(
            f"a language model: expected one tape, to record or to replay; got {str(record)!r} "
            f"and {str(replay)!r}. What is on a tape that is recorded is not asked again."
        )
    if replay is not None:
        return Tape(replay, "replay")
    return None if record is None else Tape(record)


def read_records(path: Path) -> Iterator[dict[str, Any] | None]:
    """Yield the records of a tape, in the order of the file; None for a line that is unfinished.

    Raises:
        ValueError: the file is no tape, or a record was changed since.
        FileNotFoundError: there is none.
    """
    check_regular(path)
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if line.strip():
                yield _record(line, f"{path}, line {number}")


def _record(line: bytes, where: str) -> dict[str, Any] | None:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(record, dict) or record.get("tape") != KIND:
        raise ValueError(f"{where}: expected a record of a {KIND!r}; got {line[:60]!r}.")
    said = record.pop("sum", None)
    if said != sha256_of(record):
        raise ValueError(
            f"{where}: the record was changed after it was written (its checksum is "
            "another). Take the line out, and it is asked for again."
        )
    return record


def line_of(record: Mapping[str, Any]) -> bytes:
    """A record as a line of a tape."""
    return json.dumps({**record, "sum": sha256_of(record)}, ensure_ascii=True).encode() + b"\n"


def key_of(request: Mapping[str, Any], drawn: int, turn: int) -> str:
    """Key of a request in a dialogue: a SHA-256 in hexadecimal.

    Args:
        request: what is asked: model, messages, sampling.
        drawn: number drawn by the dialogue's generator.
        turn: number of the turn, from 0.
    """
    return sha256_of([request, drawn, turn])


def sha256_of(value: Any) -> str:
    """SHA-256 of plain values, in hexadecimal; the order of a mapping's keys is none of it."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()
