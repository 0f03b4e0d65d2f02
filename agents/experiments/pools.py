"""Pools of jobs: processes of this machine, one thread each, or the nodes of a Ray cluster.

A pool is an iterator: as each job ends it yields the job with its figures, or why it has none, and
about once a second None, so that its reader can say how far the others are. A job begins when those
that it needs have ended.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_all_start_methods, get_context, parent_process
from multiprocessing.process import BaseProcess
from typing import Any

from agents.experiments.job import Job, perform, read_result
from dialgym.io.files import write_text
from dialgym.optional import require

ERROR = "error.txt"
GRACE = 60.0
"""Seconds that processes have to leave a checkpoint."""
NICENESS = 10
"""Of processes: the users of the machine go first."""
IMPORTED = (
    *(__name__, "agents.experiments.staged_job", "agents.training.run", "agents.acts"),
    *("sb3_contrib", "torch._dynamo"),
)
"""Imported once by the process that those of the jobs are forked from: it takes 4 seconds of a CPU,
and the first optimizer imports the last of them."""
PASSED_ON = "DIALGYM_"
"""Beginning of the environment variables that jobs get: folders of data, among others."""
THREADS = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")


@dataclass(frozen=True)
class Failure:
    """Reason why a job has no figures."""

    reason: str


Ended = tuple[Job, dict[str, Any] | Failure]
Pool = Iterator[Ended | None]


def in_this_process(jobs: Sequence[Job]) -> Pool:
    """Perform one job after the other; an error is raised."""
    for job in jobs:
        yield job, perform(job)


class _Waiting:
    """Jobs that have not begun, in order.

    A job is ready once those that it needs have their figures; it fails with them.
    """

    def __init__(self, jobs: Sequence[Job]) -> None:
        self.jobs = [*jobs]
        self.failed: set[Job] = set()

    def ready(self) -> Job | None:
        """Take the first job that is ready; None where there is none yet."""
        for job in self.jobs:
            if all(need.result.is_file() for need in job.needs):
                self.jobs.remove(job)
                return job
        return None

    def without_needs(self) -> Iterator[Ended]:
        """Take out the jobs that need a failed one."""
        for job in [*self.jobs]:
            if failed := [need for need in job.needs if need in self.failed]:
                self.jobs.remove(job)
                yield self.noted((job, Failure(f"it needs {failed[0]}, which has failed")))

    def noted(self, ended: Ended) -> Ended:
        """Remember a job that has failed."""
        if isinstance(ended[1], Failure):
            self.failed.add(ended[0])
        return ended


# Processes


def in_processes(jobs: Sequence[Job], workers: int) -> Pool:
    """Start a process for each job, `workers` at a time; they end with this one in any case."""
    waiting, running = _Waiting(jobs), dict[BaseProcess, Job]()
    try:
        while waiting.jobs or running:
            while len(running) < workers and (job := waiting.ready()):
                running[_start(job)] = job
            ended = [process for process in running if not process.is_alive()]
            for process in ended:
                yield waiting.noted(_outcome(process, running.pop(process)))
            yield from waiting.without_needs()
            if not ended:
                yield None
                _wait(running, 1.0)
    finally:
        for process in running:
            process.terminate()
        _wait_for_all(running, GRACE)
        for process in running:
            process.kill()
            process.join()


def _start(job: Job) -> BaseProcess:
    if "forkserver" in get_all_start_methods():
        context: Any = get_context("forkserver")
        context.set_forkserver_preload(list(IMPORTED))
    else:
        context = get_context("spawn")
    process: BaseProcess = context.Process(target=_work, args=(job, _passed_on()), daemon=True)
    with _environment(THREADS):
        process.start()
    return process


def _passed_on() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name.startswith(PASSED_ON)}


def _work(job: Job, variables: Mapping[str, str]) -> None:
    """Perform a job as a process of its own; its error is left in its folder."""
    os.environ.update(variables)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    (job.folder / ERROR).unlink(missing_ok=True)
    try:
        _perform_alone(job)
    except BaseException as error:
        write_text(job.folder / ERROR, f"{error}\n\n{traceback.format_exc()}")
        os._exit(1)


def _perform_alone(job: Job) -> dict[str, Any]:
    """Perform a job with one thread and low priority."""
    import torch

    torch.set_num_threads(1)
    if hasattr(os, "nice"):
        os.nice(max(0, NICENESS - os.nice(0)))
    return perform(job)


def _end_with_parent() -> None:
    """End with the parent, so that a killed experiment leaves no process that writes on."""
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _outcome(process: BaseProcess, job: Job) -> Ended:
    process.join()
    if process.exitcode == 0 and job.result.is_file():
        return job, read_result(job.result)
    file = job.folder / ERROR
    if file.is_file():
        return job, Failure(file.read_text("utf-8").partition("\n\n")[0])
    return job, Failure(f"its process ended with exit code {process.exitcode}")


def _wait(running: Mapping[BaseProcess, Job], seconds: float) -> None:
    """Wait until one has ended, but not longer than `seconds`."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and all(process.is_alive() for process in running):
        time.sleep(0.02)


def _wait_for_all(running: Mapping[BaseProcess, Job], seconds: float) -> None:
    """Wait until all have ended, each with a checkpoint, but not longer than `seconds`."""
    deadline = time.monotonic() + seconds
    for process in running:
        process.join(max(0.0, deadline - time.monotonic()))


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables for a while."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


# Ray


def on_ray(jobs: Sequence[Job], address: str) -> Pool:
    """Start a task of one CPU for each job, on an existing cluster whose nodes have dialgym.

    Where the nodes share the jobs' folders, killed jobs go on as they do in processes; where they
    do not, the figures of those that have ended come back and the others begin again.

    Raises:
        ImportError: Ray is not installed.
        ValueError: there is no cluster at the address.
    """
    ray = require("ray", "ray", "an experiment on a cluster")
    connect(ray, address)
    try:
        task = ray.remote(num_cpus=1, max_calls=1)(_perform_alone)
        waiting, pending = _Waiting(jobs), dict[Any, Job]()
        while waiting.jobs or pending:
            while job := waiting.ready():
                pending[task.remote(job)] = job
            ended, _ = ray.wait([*pending], timeout=1.0)
            for reference in ended:
                yield waiting.noted(_fetched(ray, reference, pending.pop(reference)))
            yield from waiting.without_needs()
            if not ended:
                yield None
    finally:
        ray.shutdown()


def connect(ray: Any, address: str) -> None:
    """Join the cluster; its tasks have this process's variables of data, and one thread.

    Raises:
        ValueError: there is none at the address.
    """
    variables = {**THREADS, **_passed_on()}
    try:
        _knock(address)
        ray.init(address, log_to_driver=False, runtime_env={"env_vars": variables})
    except (OSError, RuntimeError, ValueError) as error:
        raise ValueError(
            f"--ray: expected the address of a running cluster, such as HOST:6379 or auto, got "
            f"{address!r} ({error}). Start one with: ray start --head"
        ) from error


def _knock(address: str) -> None:
    """Raise OSError where no server listens: Ray itself would try for minutes."""
    host, _, port = address.rpartition("://")[2].rpartition(":")
    if host and port.isdigit():
        with socket.create_connection((host, int(port)), timeout=10):
            pass


def _fetched(ray: Any, reference: Any, job: Job) -> Ended:
    try:
        result = ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        return job, Failure(str(error.cause))
    except ray.exceptions.RayError as error:
        return job, Failure(str(error))
    if not job.result.is_file():  # the node has a folder of its own
        write_text(job.result, json.dumps(result, indent=1) + "\n")
    return job, result
