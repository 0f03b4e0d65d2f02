"""Many cells at a time: processes of this machine, one thread each, or the nodes of a Ray cluster.

A pool is an iterator: as each cell ends it yields the job with its figures, or what went wrong,
and about once a second None, so that whoever reads it can say how far the others are.
"""

from __future__ import annotations

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
from dialgym.tasks.slot_filling.domain.domain import PYDIAL

ERROR = "error.txt"
GRACE = 60.0
"""Seconds that processes have to leave a checkpoint."""
NICENESS = 10
"""Of processes: whoever works at the machine goes first."""
IMPORTED = (
    *(__name__, "agents.experiments.training_job", "agents.training.run", "agents.acts"),
    *("sb3_contrib", "torch._dynamo"),
)
"""What a cell needs, imported once by the process that those of the cells are forked from: it
takes 4 seconds of a CPU, and the first optimizer imports the last of them."""
THREADS = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")


@dataclass(frozen=True)
class Failure:
    """Why a cell has no figures."""

    reason: str


Ended = tuple[Job, dict[str, Any] | Failure]
Pool = Iterator[Ended | None]


def in_this_process(jobs: Sequence[Job]) -> Pool:
    """One cell after the other; an error is raised."""
    for job in jobs:
        yield job, perform(job)


# Processes


def in_processes(jobs: Sequence[Job], workers: int) -> Pool:
    """A process for each cell, `workers` at a time; they end with this one, however it ends."""
    waiting, running = list(reversed(jobs)), dict[BaseProcess, Job]()
    try:
        while waiting or running:
            while waiting and len(running) < workers:
                job = waiting.pop()
                running[_start(job)] = job
            ended = [process for process in running if not process.is_alive()]
            for process in ended:
                yield _outcome(process, running.pop(process))
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
    process: BaseProcess = context.Process(target=_work, args=(job,), daemon=True)
    with _environment(THREADS):
        process.start()
    return process


def _work(job: Job) -> None:
    """What a process does; its error is left in the cell's folder."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    (job.folder / ERROR).unlink(missing_ok=True)
    try:
        _perform_alone(job)
    except BaseException as error:
        write_text(job.folder / ERROR, f"{error}\n\n{traceback.format_exc()}")
        os._exit(1)


def _perform_alone(job: Job) -> dict[str, Any]:
    """In a process of its own, with one thread and low priority."""
    import torch

    torch.set_num_threads(1)
    if hasattr(os, "nice"):
        os.nice(max(0, NICENESS - os.nice(0)))
    return perform(job)


def _end_with_parent() -> None:
    """A killed grid leaves nobody behind, who would write what the next one writes."""
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
    """Until one has ended, but not longer than `seconds`."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and all(process.is_alive() for process in running):
        time.sleep(0.02)


def _wait_for_all(running: Mapping[BaseProcess, Job], seconds: float) -> None:
    """Until all have ended, each with a checkpoint, but not longer than `seconds`."""
    deadline = time.monotonic() + seconds
    for process in running:
        process.join(max(0.0, deadline - time.monotonic()))


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Environment variables that are set for a while."""
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
    """A task of one CPU for each cell, on an existing cluster whose nodes have dialgym.

    Where the nodes share the grid's folder, killed cells go on as they do in processes; where they
    do not, the figures of those that have ended come back and the others begin anew.

    Raises:
        ImportError: Ray is not installed.
        ValueError: there is no cluster at the address.
    """
    ray = require("ray", "ray", "a grid on a cluster")
    connect(ray, address)
    try:
        task = ray.remote(num_cpus=1, max_calls=1)(_perform_alone)
        pending = {task.remote(job): job for job in jobs}
        while pending:
            ended, _ = ray.wait([*pending], timeout=1.0)
            for reference in ended:
                yield _fetched(ray, reference, pending.pop(reference))
            if not ended:
                yield None
    finally:
        ray.shutdown()


def connect(ray: Any, address: str) -> None:
    """Join the cluster; its tasks find the data where this process does, and have one thread.

    Raises:
        ValueError: there is none at the address.
    """
    variables = {**THREADS, **({PYDIAL: os.environ[PYDIAL]} if PYDIAL in os.environ else {})}
    try:
        _knock(address)
        ray.init(address, log_to_driver=False, runtime_env={"env_vars": variables})
    except (OSError, RuntimeError, ValueError) as error:
        raise ValueError(
            f"--ray: expected the address of a running cluster, such as HOST:6379 or auto, got "
            f"{address!r} ({error}). Start one with: ray start --head"
        ) from error


def _knock(address: str) -> None:
    """Raises OSError where nobody listens: Ray itself would try for minutes."""
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
        import json

        write_text(job.result, json.dumps(result, indent=1) + "\n")
    return job, result
