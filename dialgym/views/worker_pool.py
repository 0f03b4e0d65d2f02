"""Processes that answer numbered requests, from their parent's side.

A request is sent to all workers and is pending until the answers of all have been taken. Whatever
interrupts that (Ctrl-C, a timeout, an exception of a signal handler), the request stays pending:
its answers can be taken later, or dropped by `WorkerPool.drain`, and no answer is taken for that of
another request. Whoever is not sure that a request has been sent, or an answer been read, sends the
request again: a worker that has done it already gives the same answer (`dialgym.views.channels`).
"""

import json
import multiprocessing
import os
import pickle
import select
import subprocess
import sys
import time
import weakref
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from gymnasium.error import ClosedEnvironmentError, ResetNeeded

from dialgym.views.channels import connect

# Workers end when their parent hangs up: it is the one to take signals, which go to a whole group.
START = "import json, signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN); " \
        "signal.signal(signal.SIGTERM, signal.SIG_IGN); " \
        "sys.path[:] = json.loads(sys.argv[1]); " \
        "from dialgym.views.shard_worker import main; main(*map(int, sys.argv[2:]))"  # fmt: skip

CLOSED_AFTER = 5.0
"""Seconds that workers have to end by themselves."""
CHANGING = ("reset", "set_state")
"""Requests that are undone by the workers which did them, where another worker refused."""


class Request(NamedTuple):
    """What all workers are asked for."""

    number: int
    name: str
    messages: Sequence[bytes]  # one for each worker


class WorkerPool:
    """Worker processes, and the request that they are at.

    Args:
        orders: for each worker the arguments of the request ``make``, its first.
        file: a descriptor that each worker is started with.

    Raises:
        ValueError: the orders cannot be sent to, or read in, another process.
        RuntimeError: a worker could not start.
    """

    def __init__(self, orders: Sequence[tuple[Any, ...]], file: int) -> None:
        self.interrupted = False  # the caller has lost the thread of the pending request
        self.failed = False  # a step has failed in a worker: its rows stand apart from the others
        self._request = Request(0, "", ())  # the last one, and the number of the last that is done:
        self._settled = 0  # one assignment each, so that an interrupt finds them right
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

    @property
    def pending(self) -> Request | None:
        """The request that is under way."""
        return self._request if self._request.number > self._settled else None

    def ask(self, name: str, parts: Sequence[tuple[Any, ...]] | None = None) -> list[Any]:
        """A request, and its answers; `parts` has the arguments for each worker."""
        self.send(name, parts)
        answers = self.take()
        self.settle()
        return answers

    def send(self, name: str, parts: Sequence[tuple[Any, ...]] | None = None) -> None:
        """A request, and not yet its answers."""
        self.check()
        number, parts = self._request.number + 1, parts or [()] * len(self.workers)
        try:
            messages = [w.message(name, part) for w, part in zip(self.workers, parts)]
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise ValueError(
                f"workers: what {name!r} takes cannot be sent to other processes ({error}). Give "
                "what can be pickled, with classes and functions of the top level of a module, or "
                "use workers=0."
            ) from error
        self.interrupted = True
        self._request = Request(number, name, messages)
        self._hand_out(self._request)

    def _hand_out(self, request: Request) -> None:
        for worker, message in zip(self.workers, request.messages):
            worker.send(request.number, message)

    def take(self, timeout: float | None = None) -> list[Any]:
        """The answers of all workers to the pending request; the first error after all of them.

        The request stays pending until the caller has made use of them, and settles it.

        Raises:
            multiprocessing.TimeoutError: not all came in `timeout` seconds; they still may.
            RuntimeError: a worker has ended.
            Exception: what a worker raised.
        """
        answers = self._answers(timeout)
        for kind, value in answers:
            if kind == "error":
                self.settle()
                raise value
        return [value for _, value in answers]

    def settle(self) -> None:
        """Be done with the pending request."""
        self._settled, self.interrupted = self._request.number, False

    def drain(self) -> None:
        """Wait for the answers to the pending request, if there is one, and drop them."""
        if self.pending is not None:
            self._answers(None)
            self.settle()

    def _answers(self, timeout: float | None) -> list[tuple[str, Any]]:
        self.check()
        request = self._request
        self.interrupted = True
        self._hand_out(request)  # where that was interrupted
        until = None if timeout is None else time.monotonic() + timeout
        answers = [worker.answer(request.number, until) for worker in self.workers]
        self._note_errors(request.name, answers)
        return answers

    def _note_errors(self, name: str, answers: Sequence[tuple[str, Any]]) -> None:
        errors = [value for kind, value in answers if kind == "error"]
        if name in CHANGING:
            for worker, (kind, _) in zip(self.workers, answers):
                worker.undo = bool(errors) and kind == "ok"
            self.failed &= bool(errors)
        elif name == "step":
            self.failed |= any(not isinstance(error, ResetNeeded) for error in errors)

    @property
    def undoing(self) -> bool:
        """Whether a worker has still to undo what another refused."""
        return any(worker.undo for worker in self.workers)

    def check(self) -> None:
        """Raise an error unless the workers can be asked, by this process."""
        if not self._cleanup.alive:
            raise ClosedEnvironmentError("the environment was closed; make another one.")
        if os.getpid() != self._owner:
            raise RuntimeError(
                f"this environment's workers belong to process {self._owner}, of which this one "
                "is a fork. Make an environment of its own here."
            )
        for worker in self.workers:
            worker.check()

    def close(self) -> None:
        """End the workers."""
        self._cleanup()

    def disown(self) -> None:
        """Let go of the parent's connections, in a fork of it."""
        for worker in self.workers:
            worker.hang_up()


_POOLS: "weakref.WeakSet[WorkerPool]" = weakref.WeakSet()


def _after_fork() -> None:
    """A fork that outlives its parent does not keep the parent's workers alive."""
    for pool in _POOLS:
        pool.disown()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class _Worker:
    """One process, and how far the messages to and from it have come."""

    def __init__(self, file: int, name: str) -> None:
        self.name = name
        self.undo = False  # it did what another worker refused
        self._sent = 0  # the number of the last request; 0 where it has to be sent again
        self._answer: tuple[int, str, Any] = (0, "", None)
        self._broken = ""  # why it cannot be asked any more
        self._channel, theirs = connect()
        try:
            files = (*theirs.files, file)
            command = [sys.executable, "-P", "-c", START, json.dumps(sys.path), *map(str, files)]
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, pass_fds=files)
        finally:
            theirs.close()
        self._ready = select.poll()
        self._ready.register(self._channel.fileno(), select.POLLIN)

    def message(self, name: str, arguments: tuple[Any, ...]) -> bytes:
        """A request as bytes: what can be read everywhere, and its arguments."""
        return pickle.dumps((name, self.undo)) + pickle.dumps(arguments)

    def send(self, number: int, message: bytes) -> None:
        """Send a request, unless it has been sent."""
        if self._sent == number:
            return
        try:
            self._channel.send(number, message)
        except BrokenPipeError as error:
            raise self._gone() from error
        self._sent, self.undo = number, False

    def answer(self, number: int, until: float | None) -> tuple[str, Any]:
        """``"ok"`` or ``"error"``, and the value, of the request of that number."""
        while self._answer[0] != number:
            self._receive(number, until)
        return self._answer[1:]

    def _receive(self, number: int, until: float | None) -> None:
        left = None if until is None else max(0.0, 1000 * (until - time.monotonic()))
        if not self._ready.poll(left):
            raise multiprocessing.TimeoutError(
                f"environment worker {self.name} is still at its request; call step_wait() again, "
                "or reset() to drop the step."
            )
        self._sent = 0  # what is read from here on is lost by an interrupt: ask for it again
        try:
            found, message = self._channel.receive(number)
        except EOFError as error:
            raise self._gone() from error
        if found == number:
            self._answer = (number, *pickle.loads(message))
        self._sent = number

    def check(self) -> None:
        if self._broken:
            raise RuntimeError(self._broken)

    def _gone(self) -> RuntimeError:
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(1)
        status = self.process.returncode
        self._broken = (ENDED if self._answer[0] else UNSTARTED).format(self.name, status)
        return RuntimeError(self._broken)

    def hang_up(self) -> None:
        self._channel.close()


ENDED = (
    "environment worker {} ended unexpectedly (exit status {}). The dialogues under way are lost; "
    "make the pool again."
)
UNSTARTED = (
    "environment worker {} could not start (exit status {}); its own message stands above. Check "
    "that dialgym can be imported where you are."
)


def _shut_down(workers: Sequence[_Worker], owner: int) -> None:
    """End the workers, in the process that started them: a fork of it only has their names."""
    if os.getpid() != owner:
        return
    try:
        for worker in workers:
            worker.hang_up()
        until = time.monotonic() + CLOSED_AFTER
        for worker in workers:
            with suppress(subprocess.TimeoutExpired):
                worker.process.wait(max(0.0, until - time.monotonic()))
    finally:
        for worker in workers:
            worker.process.kill()
            worker.process.wait()
