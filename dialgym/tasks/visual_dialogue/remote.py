"""A guesser and an answerer that another process has: the HTTP protocol of ILQL's visual dialogue.

The wire is that of Snell et al. (2022), "Offline RL for Natural Language Generation with Implicit
Language Q Learning": forms with ``history``, ``caption``, ``img_features`` and
``generation_kwargs``, of which each but the caption is JSON. `dialgym serve visual` speaks it too.
"""

import json
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar
from urllib.parse import quote_plus

import numpy as np

from dialgym.errors import finite_number, whole_number
from dialgym.io.cache import LRU
from dialgym.simulators.base import Generators
from dialgym.tasks.visual_dialogue.client import Client, RemoteError
from dialgym.tasks.visual_dialogue.guessers import Held
from dialgym.tasks.visual_dialogue.pool import Pool

ENDPOINTS = (
    "step",
    "step_rank",
    "fetch_reward",
    "fetch_reward_rank",
    "fetch_a_bot_response",
    "fetch_q_bot_response",
)
GREEDY = {"inference": "greedy", "beamSize": 1}
REMEMBERED = 100_000  # dialogues
Given = TypeVar("Given")
Found = TypeVar("Found")


def wire_history(history: Sequence[tuple[str, str]], asked: str | None = None) -> str:
    """A dialogue as the protocol writes it, with a question that waits for its answer."""
    said = [
        {"speaker": speaker, "text": text}
        for turn in history
        for speaker, text in zip(("question", "answer"), turn)
    ]
    return json.dumps(said + ([] if asked is None else [{"speaker": "question", "text": asked}]))


def base_url(url: str) -> str:
    """The address of a server, without the name of an endpoint at its end."""
    base, _, last = str(url).rstrip("/").rpartition("/")
    return base if last in ENDPOINTS else f"{base}/{last}"


class Remote:
    """The model of a server: what it answers, and how it ranks.

    Where a server is asked for both, one request to ``/step_rank`` gives the answer and the change
    of rank, which is remembered for the guesser. The server keeps nothing of a dialogue: one that
    is started again goes on with those under way.

    Args:
        pool: the images; their features are sent.
        url: of the server, also with the name of an endpoint at its end.
        workers: how many requests are under way at a time.
        client: settings of `Client`: timeout, retries, backoff.

    Raises:
        ValueError: an argument that cannot be.
    """

    def __init__(self, pool: Pool, url: str, workers: int = 16, **client: Any) -> None:
        self.pool, self.client = pool, Client(base_url(url), **client)
        self.workers = whole_number("workers", workers, "a remote model")
        self._start()

    def _start(self) -> None:
        self._threads: ThreadPoolExecutor | None = None
        self._lock = threading.Lock()
        self._changes: LRU[float] = LRU(REMEMBERED)  # by the last turn; at the start, the rank
        self._features: LRU[str] = LRU(1024)

    def __getstate__(self) -> dict[str, Any]:
        """Without threads and without what is remembered."""
        return {name: getattr(self, name) for name in ("pool", "client", "workers")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._start()

    def answer(self, held: Held, asked: str, ranked: bool = True) -> str:
        """The answer to a question.

        Args:
            held: the dialogue before it.
            asked: the question.
            ranked: whether the guesser will want to know the rank after it.

        Raises:
            RemoteError: the server gave no answer.
        """
        endpoint = "/step_rank" if ranked else "/fetch_a_bot_response"
        found = self.client.post(endpoint, self._form(held, asked))
        if not ranked:
            return self._text(found, endpoint)
        if not isinstance(found, list) or len(found) != 2:
            raise self._unexpected(endpoint, "[answer, change of percentile]", found)
        said = self._text(found[0], endpoint)
        after = Held(held.caption, (*held.history, (asked, said)), held.image)
        self._keep(after, self._number(found[1], endpoint))
        return said

    def percentile(self, held: Held) -> float:
        """The percentile rank of the image after a dialogue: at the start, and each change."""
        rounds = range(len(held.history) + 1)
        return sum(self._change(held._replace(history=held.history[:n])) for n in rounds)

    def _change(self, held: Held) -> float:
        """That of the last turn; at the start of a dialogue, the percentile rank itself."""
        with self._lock:
            kept = self._changes.get(held)
        if kept is not None:
            return kept
        endpoint = "/fetch_reward_rank"
        return self._keep(
            held, self._number(self.client.post(endpoint, self._form(held)), endpoint)
        )

    def _keep(self, held: Held, change: float) -> float:
        with self._lock:
            self._changes.keep(held, change)
        return change

    def _form(self, held: Held, asked: str | None = None) -> bytes:
        fields = {
            "history": wire_history(held.history, asked),
            "caption": held.caption,
            "generation_kwargs": json.dumps(GREEDY),
        }
        written = [f"{name}={quote_plus(value)}" for name, value in fields.items()]
        return "&".join([*written, f"img_features={self._image(held.image)}"]).encode()

    def _image(self, image: int) -> str:
        """The features of an image, encoded; in digits enough for float32."""
        with self._lock:
            kept = self._features.get(image)
        if kept is None:
            numbers = np.asarray(self.pool.features[image], np.float32)
            kept = quote_plus(f"[{','.join(map(str, numbers))}]", safe=",[]")
            with self._lock:
                self._features.keep(image, kept)
        return kept

    def _text(self, found: Any, endpoint: str) -> str:
        if isinstance(found, str):
            return found
        raise self._unexpected(endpoint, "a text", found)

    def _number(self, found: Any, endpoint: str) -> float:
        try:
            return finite_number("percentile", found)
        except ValueError:
            raise self._unexpected(endpoint, "a finite number", found) from None

    def _unexpected(self, endpoint: str, expected: str, found: Any) -> RemoteError:
        return RemoteError(
            f"{self.client.url}{endpoint}: expected {expected}; got {str(found)[:60]!r}. "
            "Is it a server of visual dialogue?"
        )

    def many(self, ask: Callable[[Given], Found], given: Sequence[Given]) -> list[Found]:
        """Results of `ask` for each, several at a time; the first error, once all have ended."""
        if len(given) < 2:
            return [ask(each) for each in given]
        if self._threads is None:
            self._threads = ThreadPoolExecutor(self.workers, "dialgym-remote")
        futures = [self._threads.submit(ask, each) for each in given]
        errors = [future.exception() for future in futures]
        for error in filter(None, errors):
            raise error
        return [future.result() for future in futures]


class RemoteGuesser:
    """The guesser of a server: ``guesser="remote:URL"``.

    Args:
        pool: the images; the server's pool should have them too.
        url: of the server.
        settings: see `Remote`.
    """

    def __init__(self, pool: Pool, url: str, **settings: Any) -> None:
        self.remote = Remote(pool, url, **settings)

    def percentiles(self, dialogues: Sequence[Held]) -> np.ndarray:
        """See `Guesser`; a `RemoteError` where the server gives no answer."""
        return np.array(self.remote.many(self.remote.percentile, dialogues), np.float64)


class RemoteAnswerer:
    """The answerer of a server: ``answerer="remote:URL"``.

    Where the task's guesser is the same server, one request gives the answer and the rank.

    Args:
        pool: the images; the server's pool should have them too.
        url: of the server.
        settings: see `Remote`.
    """

    def __init__(self, pool: Pool, url: str, **settings: Any) -> None:
        self.remote = Remote(pool, url, **settings)

    def reply(self, task: Any, state: Any, rng: np.random.Generator) -> str:
        """The answer to the question that waits; nothing is drawn from `rng`.

        Raises:
            RemoteError: the server gave no answer.
        """
        return self.reply_many(task, [state], [rng])[0]

    def reply_many(self, task: Any, states: Sequence[Any], rngs: Generators) -> list[str]:
        """The answers in many dialogues, several requests at a time."""
        shared = getattr(task.guesser, "remote", None)
        remote = self.remote
        if isinstance(shared, Remote) and shared.client.url == remote.client.url:
            remote = shared

        def ask(state: Any) -> str:
            return remote.answer(task.held(state), state.asked, remote is shared)

        return remote.many(ask, states)
