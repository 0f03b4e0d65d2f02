"""Collecting in several worker processes.

A worker is a plain Python process that imports dialgym and nothing heavier unless the policy needs
it. It does not import the caller's script again, so scripts need no
``if __name__ == "__main__"``.
"""

import json
import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Lock
from typing import Any, BinaryIO

from dialgym.datasets.collector import Collector, Folder, Recipe
from dialgym.io.hub import commits, recall
from dialgym.io.model_settings import SPENT, Usage
from dialgym.rollouts import Report

START = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); " \
        "from dialgym.datasets.workers import main; main()"  # fmt: skip

PATIENCE = 10.0
"""Seconds that workers have to write whole episodes if their parent ends early."""


def collect_in_workers(
    recipe: Recipe, path: Path, parts: Sequence[range], workers: int, report: Report
) -> None:
    """Let `workers` processes collect shards and write them into the folder `path`.

    Raises:
        ValueError: the policy cannot be sent to another process.
        RuntimeError: a worker has ended.
        Exception: whatever a worker raised.
    """
    todo: SimpleQueue[range] = SimpleQueue()
    for part in parts:
        todo.put(part)
    order = _pickled(recipe, path)
    lock = Lock()

    def told(news: int | Usage) -> None:
        """Episodes that have ended, or what was asked for them."""
        with lock:
            if isinstance(news, Usage):
                SPENT.add(**news.counts())
            else:
                report(news)

    processes = [_start() for _ in range(min(workers, len(parts)))]
    pool = ThreadPoolExecutor(len(processes))
    try:
        futures = [pool.submit(_supervise, p, order, todo, told) for p in processes]
        for future in futures:
            future.result()
    finally:  # also where the user interrupts: nobody begins another shard
        _empty(todo)
        for process in processes:
            process.terminate()
        deadline = time.monotonic() + PATIENCE
        for process in processes:
            _end(process, deadline)
        pool.shutdown()
        for process in processes:
            process.communicate()


def _end(process: Any, deadline: float) -> None:
    """Let a worker write the whole episodes of its shard."""
    try:
        process.wait(max(0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        process.kill()


def _pickled(recipe: Recipe, path: Path) -> bytes:
    try:
        return pickle.dumps((recipe, path))
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise ValueError(
            f"collect: the policy {recipe.name!r} cannot be sent to worker processes ({error}). "
            "Use workers=0, or give a registered name or a checkpoint."
        ) from error


def _start() -> Any:
    command = [sys.executable, "-P", "-c", START, json.dumps(sys.path)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def _supervise(
    process: Any, order: bytes, todo: "SimpleQueue[range]", told: Callable[[int | Usage], None]
) -> None:
    """Hand shards to one worker until none is left."""
    process.stdin.write(order)
    while True:
        try:
            part = todo.get_nowait()
        except Empty:
            return
        try:
            process.stdin.write(pickle.dumps(part))
            process.stdin.flush()
            while (answer := pickle.load(process.stdout)) is not None:
                if isinstance(answer, dict):
                    recall(answer)
                    continue
                if isinstance(answer, Exception):
                    _empty(todo)
                    raise answer
                told(answer)
        except (EOFError, BrokenPipeError) as error:
            _empty(todo)
            raise RuntimeError(
                f"collect: a worker ended with code {process.wait()} at episodes {part.start} to "
                f"{part.stop}; the shards before are kept. Run it again to go on."
            ) from error


def _empty(todo: "SimpleQueue[range]") -> None:
    """Leave nothing for the other workers to do."""
    with suppress(Empty):
        while True:
            todo.get_nowait()


def main() -> None:
    """Run a worker: collect the shards that the parent asks for, until it hangs up."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # a policy may print
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's, which then says so
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        _serve(sys.stdin.buffer, answers)
    except (EOFError, BrokenPipeError, KeyboardInterrupt):
        os._exit(0)  # the parent is gone; nothing is left to flush


def _interrupt(number: int, frame: Any) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a group's, and then the parent's
    raise KeyboardInterrupt


def _serve(orders: BinaryIO, answers: BinaryIO) -> None:
    def answer(value: Any) -> None:
        pickle.dump(value, answers)
        answers.flush()

    collector: Collector | None = None
    try:
        recipe, path = pickle.load(orders)
        collector = Collector(recipe)
    except EOFError:
        raise
    except Exception as error:
        answer(error)
        return

    def ended(episodes: int) -> None:
        answer(Usage(**SPENT.since(told)))
        told.update(SPENT.counts())
        answer(episodes)

    told = SPENT.counts()
    while True:
        part = pickle.load(orders)
        try:
            Folder(path).complete(part, collector, ended)
        except BrokenPipeError:
            raise
        except Exception as error:
            answer(error)
        else:
            answer(commits())
            answer(None)
