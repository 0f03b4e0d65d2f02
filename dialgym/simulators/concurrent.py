"""Slow speakers asked in many dialogues in parallel: by threads, or by one event loop."""

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, Protocol

import numpy as np

from dialgym.errors import check_object
from dialgym.simulators.base import Generators, ReplyError, Speaker


class Concurrent:
    """A `BatchSpeaker` that lets a speaker reply in up to `workers` dialogues at a time.

    For speakers that wait for something else, such as a service on the network. Each dialogue has
    its own generator, so that what is said does not depend on who is first. The threads are
    started by the first call; a pickled copy starts its own, and so does a forked process.

    Args:
        speaker: its `reply` must bear to be called by several threads at once.
        workers: number of threads.

    Raises:
        ValueError: `workers` is no whole number from 1, or `speaker` is no `Speaker`.
    """

    waits = True

    def __init__(self, speaker: Speaker, workers: int = 8) -> None:
        self.speaker, self.workers = speaker, _count("workers", workers)
        check_object("Concurrent", speaker)
        if not isinstance(speaker, Speaker):
            raise ValueError(
                "Concurrent: expected an object with reply(task, state, rng) -> str; got "
                f"{speaker!r}. One with an asynchronous areply is for Asynchronous."
            )
        self._threads: ThreadPoolExecutor | None = None
        self._process = 0  # whose threads they are

    def reply(self, task: Any, state: Any, rng: np.random.Generator) -> str:
        """The speaker's own reply."""
        return self.speaker.reply(task, state, rng)

    def reply_many(self, task: Any, states: Sequence[Any], rngs: Generators) -> list[str]:
        """All replies; a `ReplyError` of the first that failed, once all have ended."""
        if self._threads is None or self._process != os.getpid():
            self._threads = ThreadPoolExecutor(self.workers, "dialgym-speaker")
            self._process = os.getpid()
        ask, submit = self.speaker.reply, self._threads.submit
        return results([submit(ask, task, state, rng) for state, rng in zip(states, rngs)])

    def __getstate__(self) -> dict[str, Any]:
        """Without the threads."""
        return {**vars(self), "_threads": None}


class AsyncSpeaker(Protocol):
    """A speaker whose reply is awaited."""

    async def areply(self, task: Any, state: Any, rng: np.random.Generator) -> str:
        """The utterance of `task.speaker(state)`. Must leave `state` as it was."""
        ...


class EventLoop:
    """An event loop in a thread of its own, on which up to `most` coroutines run at a time.

    Clients that belong to a loop keep their connections, and it works where another loop is
    running, as in a notebook. The thread is started by the first call; a pickled copy and a forked
    process have loops of their own.

    Args:
        most: how many are awaited at a time.

    Raises:
        ValueError: `most` is no whole number from 1.
    """

    def __init__(self, most: int = 64) -> None:
        self.most = _count("most", most)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._free: asyncio.Semaphore | None = None
        self._process = 0  # whose thread runs the loop

    def start(self, make: Callable[[], Awaitable[Any]]) -> "Future[Any]":
        """Start what `make` gives, as soon as there is room."""
        if self._loop is None or self._process != os.getpid():
            self._process = os.getpid()
            self._loop, self._free = asyncio.new_event_loop(), asyncio.Semaphore(self.most)
            threading.Thread(target=self._loop.run_forever, daemon=True).start()
        return asyncio.run_coroutine_threadsafe(self._run(make), self._loop)

    async def _run(self, make: Callable[[], Awaitable[Any]]) -> Any:
        assert self._free is not None
        async with self._free:
            return await make()

    def __getstate__(self) -> dict[str, Any]:
        """Without the event loop."""
        return {**vars(self), "_loop": None, "_free": None}


class Asynchronous:
    """A `BatchSpeaker` made of an `AsyncSpeaker`, asked in up to `most` dialogues at a time.

    All calls run on one `EventLoop`.

    Args:
        speaker: an object with ``async areply(task, state, rng) -> str``.
        most: how many replies are awaited at a time.

    Raises:
        ValueError: `most` is no whole number from 1, or `speaker` has no `areply`.
    """

    waits = True

    def __init__(self, speaker: AsyncSpeaker, most: int = 64) -> None:
        self.speaker, self._loop = speaker, EventLoop(most)
        check_object("Asynchronous", speaker)
        if not callable(getattr(speaker, "areply", None)):
            raise ValueError(
                "Asynchronous: expected an object with async areply(task, state, rng) -> str; got "
                f"{speaker!r}. One with a plain reply is for Concurrent."
            )

    def reply(self, task: Any, state: Any, rng: np.random.Generator) -> str:
        """One reply, awaited."""
        text: str = self._start(task, state, rng).result()
        return text

    def reply_many(self, task: Any, states: Sequence[Any], rngs: Generators) -> list[str]:
        """All replies; a `ReplyError` of the first that failed, once all have ended."""
        return results([self._start(task, state, rng) for state, rng in zip(states, rngs)])

    def _start(self, *each: Any) -> "Future[str]":
        return self._loop.start(partial(self.speaker.areply, *each))


def results(futures: Sequence["Future[Any]"]) -> list[Any]:
    """All results; a `ReplyError` of the first that failed, once all have ended."""
    for place, future in enumerate(futures):
        error = future.exception()
        if error is not None:
            for other in futures[place:]:
                other.exception()  # a dialogue is not left while somebody replies in it
            raise ReplyError(place, error)
    return [future.result() for future in futures]


def _count(name: str, value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 1:
        return value
    raise ValueError(f"{name} must be a whole number from 1; got {value!r}.")
