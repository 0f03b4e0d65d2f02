"""Pool of worker processes that answer one request at a time.

A request is sent to all workers, then all answers are read. Whatever interrupts that (Ctrl-C, an
exception of a signal handler) leaves the pool broken: it is unknown which worker did what, and each
later call but `close` says so.
"""

import json
import multiprocessing
import os
import pickle
import subprocess
import sys
import time
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from gymnasium.error import ClosedEnvironmentError

from dialgym.io.model_settings import SPENT

# Workers end when their parent hangs up: it is the one to take signals, which go to a whole group.
START = "import json, signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN); " \
        "signal.signal(signal.SIGTERM, signal.SIG_IGN); " \
        "sys.path[:] = json.loads(sys.argv[1]); " \
        "from dialgym.parallel.worker import main; main(*map(int, sys.argv[2:]))"  # fmt: skip

CLOSED_AFTER = 5.0
"""Seconds that workers have to end by themselves."""
INTERRUPTED = (
    "the pool was interrupted while it exchanged messages with its workers; its dialogues are "
    "lost. Close it and make it again, or resume from the last checkpoint."
)
ENDED = (
    "environment worker {} ended unexpectedly (exit status {}). The dialogues under way are lost; "
    "make the pool again."
)
UNSTARTED = (
    "environment worker {} could not start (exit status {}); its own message stands above. Check "
    "that dialgym can be imported where you are."
)


class WorkerPool:
    """Worker processes of one parent.

    Args:
        orders: for each worker the arguments of the request ``make``, its first.
        file: a descriptor that each worker is started with.

    Raises:
        ValueError: the orders cannot be sent to, or read in, another process.
        RuntimeError: a worker could not start.
    """

    def __init__(self, orders: Sequence[tuple[Any, ...]], file: int) -> None:
        self.waiting = ""  # the request that was sent and is not yet answered
        self._broken = ""  # why nothing can be asked any more
        self._owner = os.getpid()
        self.workers: list[_Worker] = []
        self._cleanup = weakref.finalize(self, _shut_down, self.workers, self._owner)
        _POOLS.add(self)
        try:
            for i in range(len(orders)):
                self.workers.append(_Worker(file, f"{i + 1} of {len(orders)}"))
            self.ask("make", orders)
        except BaseException:
            self._cleanup()
            raise

    def ask(self, name: str, parts: Sequence[tuple[Any, ...]] | None = None) -> list[Any]:
        """Send a request to all workers and read their answers; see `send` and `receive`.

        Args:
            name: of the request.
            parts: the arguments for each worker.
        """
        self._send(name, parts)
        return self._receive(started=name != "make")

    def send(self, name: str) -> None:
        """Send a request without arguments to all workers.

        Raises:
            RuntimeError: the pool is broken, or breaks, as a worker has ended.
        """
        self._send(name, None)
        self.waiting, self._broken = name, ""

    def receive(self, timeout: float | None = None) -> list[Any]:
        """Read the answers of all workers; the first error among them is raised after all.

        Raises:
            multiprocessing.TimeoutError: not all came in `timeout` seconds; they still may, and
                nothing was read.
            RuntimeError: the pool is broken, or breaks, as a worker has ended.
            Exception: what a worker raised.
        """
        self.check()
        if timeout is not None:
            self._await(timeout)
        self._broken = INTERRUPTED
        return self._receive()

    def _send(self, name: str, parts: Sequence[tuple[Any, ...]] | None) -> None:
        """Send a request; the pool counts as interrupted until all answers have come."""
        self.check()
        messages = self._messages(name, parts)
        self._broken = INTERRUPTED
        for worker, message in zip(self.workers, messages):
            try:
                worker.connection.send_bytes(message)
            except ConnectionError as error:
                raise self._ended(worker, started=name != "make") from error

    def _messages(self, name: str, parts: Sequence[tuple[Any, ...]] | None) -> list[bytes]:
        if parts is None:
            return [pickle.dumps((name, ()))] * len(self.workers)
        try:
            return [pickle.dumps((name, part)) for part in parts]
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise ValueError(
                f"workers: what {name!r} takes cannot be sent to other processes ({error}). Give "
                "what can be pickled, with classes and functions of the top level of a module, or "
                "use workers=0."
            ) from error

    def _receive(self, started: bool = True) -> list[Any]:
        answers = [self._read(worker, started) for worker in self.workers]
        self.waiting = self._broken = ""
        for _, _, usage in answers:
            SPENT.add(**usage)
        for kind, value, _ in answers:
            if kind == "error":
                raise value
        return [value for _, value, _ in answers]

    def _await(self, timeout: float) -> None:
        """Wait until each worker has an answer."""
        until = time.monotonic() + timeout
        for worker in self.workers:
            if not worker.connection.poll(max(0.0, until - time.monotonic())):
                raise multiprocessing.TimeoutError(
                    f"environment worker {worker.name} is still at its request; call step_wait() "
                    "again."
                )

    def _read(self, worker: "_Worker", started: bool) -> tuple[str, Any, Mapping[str, int]]:
        try:
            message = worker.connection.recv_bytes()
        except (EOFError, ConnectionError) as error:
            raise self._ended(worker, started) from error
        answer: tuple[str, Any, Mapping[str, int]] = pickle.loads(message)
        return answer

    def _ended(self, worker: "_Worker", started: bool = True) -> RuntimeError:
        with suppress(subprocess.TimeoutExpired):
            worker.process.wait(1)
        text = ENDED if started else UNSTARTED
        self._broken = text.format(worker.name, worker.process.returncode)
        return RuntimeError(self._broken)

    def check(self) -> None:
        """Raise an error unless the workers can be asked, by this process."""
        if not self._cleanup.alive:
            raise ClosedEnvironmentError("the environment was closed; make another one.")
        if os.getpid() != self._owner:
            raise RuntimeError(
                f"this environment's workers belong to process {self._owner}, of which this one "
                "is a fork. Make an environment of its own here."
            )
        if self._broken:
            raise RuntimeError(self._broken)

    def close(self) -> None:
        """End the workers."""
        self._cleanup()

    def disown(self) -> None:
        """Close the parent's connections, in a fork of it."""
        for worker in self.workers:
            worker.connection.close()


class _Worker:
    """One process and the connection to it."""

    def __init__(self, file: int, name: str) -> None:
        self.name = name
        self.connection, theirs = multiprocessing.Pipe()
        try:
            files = (theirs.fileno(), file)
            command = [sys.executable, "-P", "-c", START, json.dumps(sys.path), *map(str, files)]
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, pass_fds=files)
        finally:
            theirs.close()


_POOLS: "weakref.WeakSet[WorkerPool]" = weakref.WeakSet()


def _after_fork() -> None:
    """Let a fork that outlives its parent not keep the parent's workers alive."""
    for pool in _POOLS:
        pool.disown()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _shut_down(workers: Sequence[_Worker], owner: int) -> None:
    """End the workers, in the process that started them: a fork of it only has their names."""
    if os.getpid() != owner:
        return
    try:
        for worker in workers:
            worker.connection.close()
        until = time.monotonic() + CLOSED_AFTER
        for worker in workers:
            with suppress(subprocess.TimeoutExpired):
                worker.process.wait(max(0.0, until - time.monotonic()))
    finally:
        for worker in workers:
            worker.process.kill()
            worker.process.wait()
