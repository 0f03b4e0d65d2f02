"""The grid: what has not been done is, and how long that will take."""

from __future__ import annotations

import csv
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from agents.grid.cells import Cell, Protocol
from agents.grid.perform import RESULT, Job, description, read_result
from agents.grid.pools import Failure, Pool, in_processes, in_this_process, on_ray


class Progress(NamedTuple):
    """How far a grid is.

    Attributes:
        cells, cells_done: of the grid.
        dialogues, dialogues_done: of training and tests.
        seconds_left: an estimate; None where nothing is known yet.
        ended: the cell that has just ended, and its figures or why it has none.
    """

    cells: int
    cells_done: int
    dialogues: int
    dialogues_done: int
    seconds_left: float | None
    ended: tuple[Cell, dict[str, Any] | Failure] | None = None


Report = Callable[[Progress], object]


def run_grid(
    cells: Sequence[Cell],
    protocol: Protocol,
    out: str | Path,
    workers: int = 1,
    ray: str | None = None,
    command: str = "",
    report: Report = lambda progress: None,
) -> tuple[list[dict[str, Any]], dict[Cell, str]]:
    """Perform what has not been done of a grid; killed at any moment and run again it goes on.

    Args:
        cells: to perform; each has a folder below `out`.
        protocol: of each.
        out: the grid's folder, which nodes of a cluster share best.
        workers: processes; 0 performs one cell after the other in this one.
        ray: the address of a Ray cluster, in place of processes.
        command: that asked for it, which is written down with the figures.
        report: called about once a second.

    Returns:
        The figures of all cells that have been performed, now or before, in order; and why others
        have failed.

    Raises:
        ValueError: a cell was performed with other settings before, a setting is impossible, or
            there is no cluster at the address.
        ImportError: Ray is not installed.
    """
    if workers < 0:
        raise ValueError(f"workers: expected 0 or more, got {workers}")
    root = Path(out).resolve()
    jobs = [Job(cell, protocol, root / cell.folder, command) for cell in cells]
    results = {job.cell: result for job in jobs if (result := _done(job))}
    missing = [job for job in jobs if job.cell not in results]
    state = _State(jobs, dict(results), max(workers, 1))
    failures: dict[Cell, str] = {}
    report(state.progress())
    for ended in _pool(missing, workers, ray):
        if ended is not None:
            job, found = ended
            if isinstance(found, Failure):
                failures[job.cell] = found.reason
            else:
                state.results[job.cell] = found
            report(state.progress((job.cell, found)))
        else:
            report(state.progress())
    return [state.results[cell] for cell in cells if cell in state.results], failures


def finished(out: str | Path) -> list[dict[str, Any]]:
    """The figures of all cells that have ended below a folder, whatever grids they are of."""
    return [read_result(file) for file in sorted(Path(out).glob(f"*/*/seed*/{RESULT}"))]


def _pool(jobs: Sequence[Job], workers: int, ray: str | None) -> Pool:
    if not jobs:
        return iter(())
    if ray is not None:
        return on_ray(jobs, ray)
    return in_processes(jobs, workers) if workers else in_this_process(jobs)


def _done(job: Job) -> dict[str, Any] | None:
    """The figures of a cell that has been performed.

    Raises:
        ValueError: that was done with other settings.
    """
    wanted, file = description(job.cell, job.protocol), job.folder / RESULT
    if not file.is_file():
        return None
    found = read_result(file)
    changed = sorted(name for name in wanted if found.get(name) != wanted[name])
    if changed:
        differences = "; ".join(_difference(n, found.get(n), wanted[n]) for n in changed)
        raise ValueError(
            f"{job.cell} has been run with other settings ({differences}). Delete {job.folder} to "
            "run it anew, or give another --out."
        )
    return found


def _difference(name: str, old: Any, new: Any) -> str:
    if not (isinstance(old, Mapping) and isinstance(new, Mapping)):
        return f"{name}: {old!r} -> {new!r}"
    keys = sorted(k for k in {*old, *new} if old.get(k) != new.get(k))
    return ", ".join(f"{k}: {old.get(k)!r} -> {new.get(k)!r}" for k in keys)


@dataclass
class _State:
    """What is known of a grid while it runs."""

    jobs: Sequence[Job]
    results: dict[Cell, dict[str, Any]]
    workers: int
    started: float = field(default_factory=time.monotonic)

    def progress(self, ended: Any = None) -> Progress:
        done = {job.cell: self._dialogues(job) for job in self.jobs}
        total = {job.cell: _length(job) for job in self.jobs}
        return Progress(
            len(self.jobs),
            len(self.results),
            sum(total.values()),
            sum(done.values()),
            self._seconds_left({cell: total[cell] - done[cell] for cell in total}),
            ended,
        )

    def _dialogues(self, job: Job) -> int:
        return _length(job) if job.cell in self.results else _played(job.folder)

    def _seconds_left(self, left: Mapping[Cell, int]) -> float | None:
        """By what a dialogue has cost each method; of one not yet seen, by the mean of others."""
        costs: dict[str, list[float]] = {}
        for job in self.jobs:
            if job.cell in self.results:
                cost = self.results[job.cell]["seconds"] / _length(job)
                costs.setdefault(job.cell.method.name, []).append(cost)
        if not costs:
            return None
        means = {name: sum(values) / len(values) for name, values in costs.items()}
        other = sum(means.values()) / len(means)
        work = sum(n * means.get(cell.method.name, other) for cell, n in left.items())
        return work / self.workers


def _length(job: Job) -> int:
    """Dialogues of a cell, tests included."""
    if not job.cell.method.learns:
        return job.protocol.episodes
    return job.protocol.dialogues + len(job.protocol.tests) * job.protocol.episodes


def _played(folder: Path) -> int:
    """Dialogues of training that a cell has played so far."""
    try:
        with (folder / "learning_curve.csv").open(encoding="utf-8", newline="") as lines:
            return sum(int(row["episodes"]) for row in csv.DictReader(lines))
    except (OSError, KeyError, ValueError):
        return 0
