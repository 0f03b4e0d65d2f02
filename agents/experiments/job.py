"""Jobs that a grid is made of: each has a folder, and goes on from where it was cut off."""

from __future__ import annotations

import csv
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from dialgym.io.checksums import read_json_checked, write_json_checked
from dialgym.io.locks import PATIENCE, locked
from dialgym.versions import versions

RESULT = "result.json"


class Job(ABC):
    """A training with its tests, or the tests of a policy; can be pickled, and hashed.

    Attributes:
        folder: its own, absolute.
        unit: what its length is counted in.
    """

    folder: Path
    unit: ClassVar[str]

    @property
    @abstractmethod
    def command(self) -> str:
        """What makes the figures, which is written down with them."""

    @property
    @abstractmethod
    def kind(self) -> str:
        """Jobs of one kind cost alike, by unit of length."""

    @property
    def result(self) -> Path:
        """The file of its figures."""
        return self.folder / RESULT

    @abstractmethod
    def description(self) -> dict[str, Any]:
        """What determines the figures, as plain values.

        Raises:
            ValueError: it is impossible.
        """

    @abstractmethod
    def figures(self) -> dict[str, Any]:
        """Do what has not been done, and return what came of it, as plain values."""

    @abstractmethod
    def clear(self) -> None:
        """Remove what is of no use once the figures are written."""

    @abstractmethod
    def length(self) -> int:
        """How much there is to do."""

    @abstractmethod
    def done(self) -> int:
        """How much of it has been done so far, as far as files tell."""

    def spent(self) -> float:
        """Seconds that this has taken, as far as files tell."""
        rows = read_curve_rows(self.folder)
        return float(rows[-1].get("seconds") or 0.0) if rows else 0.0

    @abstractmethod
    def summary(self, result: Mapping[str, Any]) -> str:
        """A line about the figures."""


def perform(job: Job) -> dict[str, Any]:
    """Do what has not been done of a job; the figures, as they stand in its file.

    Raises:
        FolderInUse: another process performs it.
    """
    with locked(job.folder, PATIENCE):
        return read_result(job.result) if job.result.is_file() else _perform(job)


def _perform(job: Job) -> dict[str, Any]:
    started = time.monotonic()
    result = {
        **job.description(),
        **job.figures(),
        "command": job.command,
        "versions": versions(),
        "seconds": round(time.monotonic() - started, 1),
    }
    write_json_checked(job.result, result, indent=1)
    job.clear()
    return result


def read_result(file: Path) -> dict[str, Any]:
    """What `perform` wrote.

    Raises:
        ValueError: the file holds something else, or is damaged.
    """
    found = read_json_checked(file, "the figures of a cell, as JSON")
    if not isinstance(found, dict) or "seconds" not in found:
        raise ValueError(
            f"{str(file)!r}: expected the figures of a cell; got {str(found)[:60]!r}. Delete the "
            "file to have them made anew."
        )
    return found


def finished(job: Job) -> dict[str, Any] | None:
    """The figures of a job that has been performed.

    Raises:
        ValueError: that was done with other settings.
    """
    if not job.result.is_file():
        return None
    wanted, found = job.description(), read_result(job.result)
    changed = sorted(name for name in wanted if found.get(name) != wanted[name])
    if changed:
        differences = "; ".join(_difference(n, found.get(n), wanted[n]) for n in changed)
        raise ValueError(
            f"{job} has been run with other settings ({differences}). Delete "
            f"{job.result} and {job.folder} to run it anew, or give another --out."
        )
    return found


def _difference(name: str, old: Any, new: Any) -> str:
    if not (isinstance(old, Mapping) and isinstance(new, Mapping)):
        return f"{name}: {old!r} -> {new!r}"
    keys = sorted(k for k in {*old, *new} if old.get(k) != new.get(k))
    return ", ".join(f"{k}: {old.get(k)!r} -> {new.get(k)!r}" for k in keys)


def read_curve_rows(folder: Path) -> list[dict[str, str]]:
    """The rows of a run's learning curve so far; none where there is no such file."""
    try:
        with (folder / "learning_curve.csv").open(encoding="utf-8", newline="") as lines:
            return list(csv.DictReader(lines))
    except OSError:
        return []
