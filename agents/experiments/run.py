"""Run of an experiment: jobs without figures are performed, with an estimate of the time left."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from agents.experiments.job import Job, finished, with_needs
from agents.experiments.pools import Failure, Pool, in_processes, in_this_process, on_ray
from dialgym.io.files import check_writable

J = TypeVar("J", bound=Job)


class Progress(NamedTuple):
    """Progress of an experiment.

    Attributes:
        jobs, jobs_done: numbers of jobs.
        length, done: in the unit of the jobs, such as dialogues of training and tests.
        seconds_left: an estimate; None where nothing is known yet.
        ended: the job that has just ended, and its figures or why it has none.
    """

    jobs: int
    jobs_done: int
    length: int
    done: int
    seconds_left: float | None
    ended: tuple[Job, dict[str, Any] | Failure] | None = None


Report = Callable[[Progress], object]


def run_jobs(
    jobs: Sequence[J],
    workers: int = 1,
    ray: str | None = None,
    report: Report = lambda progress: None,
) -> tuple[dict[J, dict[str, Any]], dict[J, str]]:
    """Complete jobs; when it has been killed, it goes on where it is run again.

    Args:
        jobs: to perform, after what they need; each has a folder, which nodes of a cluster share
            best.
        workers: processes; 0 performs one job after the other in this one.
        ray: the address of a Ray cluster, in place of processes.
        report: called about once a second.

    Returns:
        The figures by job, of those that they need too; and why others have failed.

    Raises:
        ValueError: a job was performed with other settings before, a setting is impossible, or
            there is no cluster at the address.
        ImportError: Ray is not installed.
        OSError: the folders of jobs cannot be written; the message says what to do.
    """
    if workers < 0:
        raise ValueError(f"workers: expected 0 or more, got {workers}")
    planned: Sequence[Any] = with_needs(jobs)
    results = {job: result for job in planned if (result := finished(job))}
    missing = [job for job in planned if job not in results]
    for folder in dict.fromkeys(job.folder.parent for job in missing):
        check_writable(folder)
    state = _State(planned, dict(results), max(workers, 1))
    failures: dict[J, str] = {}
    report(state.progress())
    for ended in _pool(missing, workers, ray):
        if ended is not None:
            job: Any = ended[0]
            if isinstance(ended[1], Failure):
                failures[job] = ended[1].reason
            else:
                state.results[job] = ended[1]
        report(state.progress(ended))
    return state.results, failures


def _pool(jobs: Sequence[Job], workers: int, ray: str | None) -> Pool:
    if not jobs:
        return iter(())
    if ray is not None:
        return on_ray(jobs, ray)
    return in_processes(jobs, workers) if workers else in_this_process(jobs)


@dataclass
class _State:
    """Figures of jobs while they are run."""

    jobs: Sequence[Any]
    results: dict[Any, dict[str, Any]]
    workers: int
    started: float = field(default_factory=time.monotonic)

    def progress(self, ended: Any = None) -> Progress:
        total = {job: job.length() for job in self.jobs}
        done = {job: total[job] if job in self.results else job.done() for job in self.jobs}
        left = {job: max(0, total[job] - done[job]) for job in total}
        return Progress(
            len(self.jobs),
            len(self.results),
            sum(total.values()),
            sum(done.values()),
            self._seconds_left(left, done),
            ended,
        )

    def _seconds_left(self, left: Mapping[Job, int], done: Mapping[Job, int]) -> float | None:
        """Estimate the seconds by what a unit has cost each kind so far.

        Units differ from kind to kind (tokens, gradient steps), so that a job of a kind not yet
        seen is taken to last as long as one of the others does.
        """
        costs: dict[str, list[float]] = {}
        whole: list[float] = []
        for job in self.jobs:
            if done[job]:
                ended = job in self.results
                seconds = self.results[job]["seconds"] if ended else job.seconds_so_far()
                costs.setdefault(job.kind, []).append(seconds / done[job])
                whole.append(seconds / done[job] * (done[job] + left[job]))
        if not costs:
            return None
        means = {kind: sum(values) / len(values) for kind, values in costs.items()}
        other = sum(whole) / len(whole)
        work = sum(n * means[job.kind] if job.kind in means else other for job, n in left.items())
        return work / self.workers
