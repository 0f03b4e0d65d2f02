"""Job of an experiment: its folder, what it needs, its result; resumed where it was cut off."""

from __future__ import annotations

import csv
import json
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

from dialgym.io.checksums import read_json_checked, write_json_checked
from dialgym.io.files import read_json, write_text
from dialgym.io.locks import PATIENCE, locked
from dialgym.versions import command_line, versions

RESULT, CURVE = "result.json", "learning_curve.csv"


class Job(ABC):
    """A training with its scores, or the scores of a policy; it can be pickled and hashed.

    Attributes:
        folder: its own, absolute.
        unit: what its length is counted in.
        needs: jobs that are performed before it, whose folders it reads.
    """

    folder: Path
    unit: ClassVar[str] = "timesteps"
    needs: tuple[Job, ...] = ()

    @property
    def command(self) -> str:
        """The command that makes the figures, which is written down with them."""
        return command_line()

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
        """Plain values that determine the figures.

        Raises:
            ValueError: it is impossible.
        """

    @abstractmethod
    def figures(self) -> dict[str, Any]:
        """Complete the job, and return its figures as plain values."""

    @abstractmethod
    def length(self) -> int:
        """Return the number of units to do."""

    def done(self) -> int:
        """Return the number of units that are done, as far as files tell."""
        return 0

    def seconds_so_far(self) -> float:
        """Return the seconds that this has taken, as far as files tell."""
        rows = read_curve_rows(self.folder)
        return float(rows[-1].get("seconds") or 0.0) if rows else 0.0

    def clear(self) -> None:
        """Remove files of no use once the figures are written; none by default."""
        return

    @abstractmethod
    def summary(self, result: Mapping[str, Any]) -> str:
        """Return a line about the figures."""


def with_needs(jobs: Iterable[Job]) -> list[Job]:
    """Return the jobs with all that they need, each once and after its needs."""
    found: dict[Job, None] = {}

    def add(job: Job) -> None:
        if job not in found:
            for need in job.needs:
                add(need)
            found[job] = None

    for job in jobs:
        add(job)
    return [*found]


def perform(job: Job) -> dict[str, Any]:
    """Complete a job and those that it needs; return its figures, as in its file.

    Raises:
        FolderInUse: another process performs it.
    """
    for need in job.needs:
        perform(need)
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
    """Read the figures that `perform` wrote.

    Raises:
        ValueError: the file holds something else, or is damaged.
    """
    found = read_json_checked(file, "the figures of a job, as JSON")
    if not isinstance(found, dict) or "seconds" not in found:
        raise ValueError(
            f"{str(file)!r}: expected the figures of a job; got {str(found)[:60]!r}. Delete the "
            "file to have them made again."
        )
    return found


def finished(job: Job) -> dict[str, Any] | None:
    """Read the figures of a job that has been performed; None of one that has not.

    Raises:
        ValueError: that was done with other settings.
    """
    if not job.result.is_file():
        return None
    result = read_result(job.result)
    if changed := differences(result, job.description()):
        raise ValueError(
            f"{job} has been run with other settings ({changed}). Delete "
            f"{job.result} and {job.folder} to run it again, or give another --out."
        )
    return result


def differences(old: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """The entries of `now` that were others before, for a message; "" where there are none."""
    changed = sorted(name for name in now if old.get(name) != now[name])
    return "; ".join(_difference(name, old.get(name), now[name]) for name in changed)


def _difference(name: str, old: Any, new: Any) -> str:
    if not (isinstance(old, Mapping) and isinstance(new, Mapping)):
        return f"{name}: {old!r} -> {new!r}"
    keys = sorted(k for k in {*old, *new} if old.get(k) != new.get(k))
    return ", ".join(f"{k}: {old.get(k)!r} -> {new.get(k)!r}" for k in keys)


# What a training takes


@contextmanager
def timed(file: Path) -> Iterator[None]:
    """Add up the seconds of the block over all processes that worked at it, killed ones too."""
    before = read_json(file, "a cost") if file.is_file() else {}
    base = {name: before.get(name, 0.0) for name in ("wall_seconds", "cpu_seconds")}
    wall, cpu, ended = time.monotonic(), time.process_time(), threading.Event()

    def write() -> None:
        cost = {
            "wall_seconds": round(base["wall_seconds"] + time.monotonic() - wall, 1),
            "cpu_seconds": round(base["cpu_seconds"] + time.process_time() - cpu, 1),
        }
        write_text(file, json.dumps(cost) + "\n")

    def write_now_and_then() -> None:
        while not ended.wait(10.0):
            write()

    write()
    thread = threading.Thread(target=write_now_and_then, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        write()


def read_curve_rows(folder: Path) -> list[dict[str, str]]:
    """Read the rows of a run's learning curve so far; none where there is no such file."""
    try:
        with (folder / CURVE).open(encoding="utf-8", newline="") as lines:
            return list(csv.DictReader(lines))
    except OSError:
        return []


def short_curve(folder: Path) -> list[list[float]]:
    """Timesteps, seconds and mean return while learning, in at most 200 rows."""
    rows = [row for row in read_curve_rows(folder) if row.get("mean_return")]
    kept = rows[:: max(1, -(-len(rows) // 200))]
    return [[float(row[k]) for k in ("timesteps", "seconds", "mean_return")] for row in kept]
