"""The HTTP server of visual dialogue: `dialgym serve visual`.

Requests are forms, as `remote.py` sends them. What comes in while the model computes is computed
together next, by one thread: there is no waiting for company, and one model however many clients.
"""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from hashlib import blake2b
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

import numpy as np

from dialgym.errors import whole_number
from dialgym.io.cache import LRU
from dialgym.io.http_server import Callers, Refused, body_of, fastapi_app, json_answer, serve
from dialgym.tasks.visual_dialogue.guessers import Held
from dialgym.tasks.visual_dialogue.serving import ENDPOINTS, Ask, BadRequest, Bots, Endpoint

if TYPE_CHECKING:
    from fastapi import FastAPI

PURPOSE = "a server of visual dialogue"
MOST_BYTES = 4 * 2**20  # of a request
MOST_TURNS = 100  # of a dialogue
MOST_CHARACTERS = 2000  # of one utterance
IMAGES = 1024  # whose encoded features are known again without reading them
LARGEST = 1e100  # number among features, so that its square is one too
SPEAKERS = ("question", "answer")
Answer = Callable[[Any], Awaitable[Any]]
"""The content of the answer to a request."""


class Forms:
    """Reads requests.

    Args:
        bots: which know the images.
    """

    def __init__(self, bots: Bots) -> None:
        self.bots = bots
        self._images: LRU[int] = LRU(IMAGES)

    def read(self, body: bytes, endpoint: Endpoint) -> Ask:
        """The request of a form.

        Raises:
            BadRequest: a field is missing, or is not what it has to be; the message says which.
        """
        fields = _fields(body)
        rounds, asked = _history(_json(fields, "history", list))
        if endpoint.answers and asked is None:
            raise BadRequest("history: expected a question at its end, to be answered.")
        if not endpoint.answers and asked is not None:
            raise BadRequest("history: expected an answer at its end; got a question.")
        if "generation_kwargs" in fields:  # decoding is greedy, whatever they say
            _json(fields, "generation_kwargs", dict)
        caption = fields.get("caption")
        if caption is None:
            raise BadRequest("caption: missing.")
        image = 0 if endpoint.asks else self._image(fields)
        return Ask(endpoint, Held(_short("caption", caption), rounds, image), asked)

    def _image(self, fields: Mapping[str, str]) -> int:
        written = blake2b(fields.get("img_features", "").encode()).digest()
        image = self._images.get(written)
        if image is None:
            image = self.bots.image(_numbers(_json(fields, "img_features", list)))
            self._images.keep(written, image)
        return image


def _fields(body: bytes) -> dict[str, str]:
    """The fields of a form, each once."""
    try:
        # a list of numbers has thousands of these, which are slow to decode one by one
        text = body.replace(b"%2C+", b",").replace(b"%2C", b",").decode("ascii")
        pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=20, errors="strict")
    except ValueError as error:
        raise BadRequest(
            f"expected a form, application/x-www-form-urlencoded, in UTF-8 ({error})."
        ) from error
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise BadRequest("expected each field once.")
    return fields


def _json(fields: Mapping[str, str], name: str, kind: type) -> Any:
    """The value of a field that is JSON."""
    if name not in fields:
        raise BadRequest(f"{name}: missing.")
    try:
        value = json.loads(fields[name])
    except (ValueError, RecursionError) as error:
        raise BadRequest(f"{name}: expected JSON ({str(error)[:100]}).") from error
    if not isinstance(value, kind):
        what = "a list" if kind is list else "an object"
        raise BadRequest(f"{name}: expected {what}; got {fields[name][:60]!r}.")
    return value


def _history(turns: list[Any]) -> tuple[tuple[tuple[str, str], ...], str | None]:
    """The rounds of a dialogue, and the question that waits, if one does."""
    if len(turns) > 2 * MOST_TURNS:
        raise BadRequest(f"history: expected {2 * MOST_TURNS} entries at most; got {len(turns)}.")
    texts = []
    for place, turn in enumerate(turns):
        expected, name = SPEAKERS[place % 2], f"history[{place}]"
        if not isinstance(turn, dict) or turn.get("speaker") != expected:
            raise BadRequest(f"{name}: expected an object with speaker {expected!r} and text.")
        if not isinstance(turn.get("text"), str):
            raise BadRequest(f"{name}: expected a string as text.")
        texts.append(_short(name, turn["text"]))
    asked = texts.pop() if len(texts) % 2 else None
    return tuple(zip(texts[::2], texts[1::2])), asked


def _short(name: str, text: str) -> str:
    if len(text) > MOST_CHARACTERS:
        raise BadRequest(f"{name}: expected {MOST_CHARACTERS} characters at most; got {len(text)}.")
    return text


def _numbers(values: list[Any]) -> np.ndarray:
    """(F,) float64, finite and not all zero."""
    if values and not {type(value) for value in values} <= {int, float}:
        raise BadRequest("img_features: expected a list of numbers.")
    try:
        found = np.array(values, np.float64)
    except OverflowError:
        found = np.array([np.inf])
    if not 0 < np.abs(found).max(initial=0) < LARGEST:  # nor NaN
        raise BadRequest("img_features: expected finite numbers that are not all zero.")
    return found


class Batcher:
    """Gives the model the requests that are there, together.

    Args:
        bots: the model.
        most: requests of one batch.
        waiting: requests that may wait; more are refused with 503.
    """

    def __init__(self, bots: Bots, most: int = 64, waiting: int = 1024) -> None:
        self.bots = bots
        self.most = whole_number("max_batch", most, "serve visual")
        self._queue: asyncio.Queue[tuple[Ask, asyncio.Future[Any]]] = asyncio.Queue(waiting)
        self._thread = ThreadPoolExecutor(1, "dialgym-model")

    async def ask(self, ask: Ask) -> Any:
        """The answers of the model."""
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        try:
            self._queue.put_nowait((ask, answer))
        except asyncio.QueueFull:
            raise Refused(503, "too many requests are waiting; try again later.") from None
        return await answer

    async def run(self) -> None:
        """Serve until cancelled."""
        while True:
            batch = [await self._queue.get()]
            while len(batch) < self.most and not self._queue.empty():
                batch.append(self._queue.get_nowait())
            batch = [pair for pair in batch if not pair[1].done()]  # whose clients hung up
            for (_, answer), found in zip(batch, await self._serve([ask for ask, _ in batch])):
                if answer.done():
                    continue
                if isinstance(found, Exception):
                    answer.set_exception(found)
                else:
                    answer.set_result(found)

    async def _serve(self, asks: list[Ask]) -> list[Any]:
        """The answers; where the model fails, each request is tried alone, and its error kept."""
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._thread, self.bots.serve, asks)
        except Exception as error:
            if len(asks) == 1:
                return [error]
            return [(await self._serve([ask]))[0] for ask in asks]


def make_app(
    bots: Bots, max_batch: int = 64, waiting: int = 1024, callers: Callers | None = None
) -> "FastAPI":
    """The application, for any ASGI server; `GET /` tells what it serves.

    Errors are JSON, ``{"detail": ...}``: 400 for a bad form, 403 for a foreign host or site, 404,
    405, 408 for one that comes in too slowly, 413 for one too large, 500 for a model that fails,
    503 where too many wait.

    Args:
        bots: the model.
        max_batch, waiting: as of `Batcher`.
        callers: who may ask; None for callers of this machine.

    Raises:
        ImportError: FastAPI is missing.
    """
    callers = callers or Callers()
    forms, batcher = Forms(bots), Batcher(bots, max_batch, waiting)

    @asynccontextmanager
    async def running(app: Any) -> AsyncIterator[None]:
        task = asyncio.create_task(batcher.run())
        yield
        task.cancel()

    app = fastapi_app(PURPOSE, title="dialgym visual dialogue", lifespan=running)
    served = [name for name, endpoint in ENDPOINTS.items() if _is_served(endpoint, bots)]

    async def describe(request: Any) -> Any:
        pool = {"images": len(bots.features), "features": bots.features.shape[1]}
        return {"endpoints": served, **pool}

    def asking(endpoint: Endpoint) -> Answer:
        async def ask(request: Any) -> Any:
            return await batcher.ask(forms.read(await body_of(request, MOST_BYTES), endpoint))

        return ask

    app.add_route("/", _handler(describe, callers), methods=["GET"])
    for name in served:
        app.add_route(f"/{name}", _handler(asking(ENDPOINTS[name]), callers), methods=["POST"])
    return app


def _is_served(endpoint: Endpoint, bots: Bots) -> bool:
    """Return True if there is somebody for it: a questioner, a guesser that imagines features."""
    if endpoint.asks:
        return bots.questioner is not None
    return endpoint.measure != "distance" or bots.tells_distance


def _handler(answer: Answer, callers: Callers) -> Any:
    """Answer requests in JSON, and errors by their status."""

    async def handle(request: Any) -> Any:
        try:
            callers.check(request.headers)
            return json_answer(200, await answer(request))
        except BadRequest as error:
            return json_answer(400, {"detail": str(error)})
        except Refused as error:
            return json_answer(error.status, {"detail": error.detail})
        except Exception as error:
            text = f"the model failed: {type(error).__name__}: {str(error)[:200]}"
            return json_answer(500, {"detail": text})

    return handle


def serve_bots(
    bots: Bots, listener: socket.socket, max_batch: int = 64, callers: Callers | None = None
) -> None:
    """Serve at a socket until interrupted.

    Raises:
        ImportError: FastAPI or uvicorn is missing.
    """
    serve(make_app(bots, max_batch, callers=callers), listener, PURPOSE)
