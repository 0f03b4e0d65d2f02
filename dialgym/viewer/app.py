"""The viewer over HTTP: its page and the routes of the page's requests (see `guard`).

The page is the files of `static`, which load nothing from elsewhere. Requests that play dialogues
run in one thread, one after the other; the others do not wait for them.
"""

import asyncio
import json
import logging
import socket
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from dialgym.io.http_server import EXTRA, Refused, body_of, fastapi_app, finite, json_answer, serve
from dialgym.optional import require
from dialgym.viewer.api import Viewer
from dialgym.viewer.guard import HEADERS, QUERY, Guard, set_cookie
from dialgym.viewer.query import NotHereError, Query

if TYPE_CHECKING:
    from fastapi import FastAPI

PURPOSE = "the viewer (dialgym view)"
MOST_BYTES = 2**20  # of a request
KINDS = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}
BAD = (ValueError, TypeError, ImportError, OSError, FloatingPointError, RuntimeError)
"""Errors of our functions for bad requests."""
LOG = logging.getLogger(__name__)
Call = Callable[[Query], Mapping[str, Any]]


@dataclass(frozen=True)
class Route:
    """Handler of the requests at a path.

    Attributes:
        method: of HTTP.
        path: with the names of its parts in braces.
        call: the viewer's method.
        plays: it plays dialogues, and takes its turn with others that do.
    """

    method: str
    path: str
    call: Call
    plays: bool = False


def routes(viewer: Viewer) -> list[Route]:
    """All that can be query."""
    return [
        Route("GET", "/api/sources", viewer.sources),
        Route("GET", "/api/dialogues/{source}", viewer.page),
        Route("GET", "/api/dialogues/{source}/analysis", viewer.analysis, plays=True),
        Route("GET", "/api/dialogues/{source}/{row}", viewer.dialogue),
        Route("GET", "/api/dialogues/{source}/{row}/replay", viewer.replay, plays=True),
        Route("GET", "/api/runs/{source}", viewer.run),
        Route("GET", "/api/runs/{source}/samples/{timesteps}", viewer.samples),
        Route("GET", "/api/results/{source}", viewer.results),
        Route("GET", "/api/policies", viewer.policies),
        Route("POST", "/api/compare", viewer.compare, plays=True),
        Route("GET", "/api/compare/{comparison}/{pair}", viewer.pair),
        Route("GET", "/api/rate/{comparison}", viewer.next_pair),
        Route("POST", "/api/rate/{comparison}", viewer.prefer),
        Route("POST", "/api/score/{source}/{row}", viewer.score),
        Route("POST", "/api/unrate", viewer.unrate),
        Route("GET", "/api/about", viewer.about),
        Route("POST", "/api/games", viewer.begin, plays=True),
        Route("POST", "/api/games/{game}/say", viewer.say, plays=True),
        Route("POST", "/api/games/{game}/undo", viewer.undo, plays=True),
        Route("POST", "/api/games/{game}/judge", viewer.judge, plays=True),
        Route("GET", "/api/games/{game}/hint", viewer.hint, plays=True),
        Route("GET", "/api/games/{game}/picture", viewer.picture, plays=True),
        Route("POST", "/api/chat", viewer.chat, plays=True),
    ]


def make_app(viewer: Viewer, guard: Guard) -> "FastAPI":
    """The application, for any ASGI server.

    Raises:
        ImportError: FastAPI is missing.
    """
    app = fastapi_app(PURPOSE, title="dialgym")
    players = ThreadPoolExecutor(1, "dialgym-player")
    for route in routes(viewer):
        app.add_route(route.path, _handler(route, guard, players), methods=[route.method])
    for name, (kind, content) in static_files().items():
        path = "/" if name == "index.html" else f"/static/{name}"
        app.add_route(path, _file(guard, kind, content), methods=["GET"])
    return app


def static_files() -> dict[str, tuple[str, bytes]]:
    """Kind and content of each file of the page, by name."""
    folder = files("dialgym.viewer") / "static"
    contents = {}
    for file in folder.iterdir():
        suffix = f".{file.name.rpartition('.')[2]}"
        if suffix in KINDS:
            contents[file.name] = (KINDS[suffix], file.read_bytes())
    return contents


def _handler(route: Route, guard: Guard, players: ThreadPoolExecutor) -> Any:
    """Make the handler of the requests at a path."""
    pool = players if route.plays else None

    async def handle(request: Any) -> Any:
        try:
            _check(guard, request)
            query = Query(await _query_of(request))
            loop = asyncio.get_running_loop()
            answer = await loop.run_in_executor(pool, partial(route.call, query))
            return json_answer(200, finite(answer), HEADERS)
        except Refused as error:
            return json_answer(error.status, {"detail": error.detail}, HEADERS)
        except NotHereError as error:
            return json_answer(404, {"detail": str(error)}, HEADERS)
        except BAD as error:
            return json_answer(400, {"detail": str(error)}, HEADERS)
        except Exception as error:  # of your own task or policy, say
            LOG.exception("%s %s", route.method, request.url.path)
            text = f"{type(error).__name__}: {error} (the terminal says where)"
            return json_answer(500, {"detail": text}, HEADERS)

    return handle


def _file(guard: Guard, kind: str, content: bytes) -> Any:
    """Make the handler that answers with a file and moves the token into a cookie."""
    responses = require("starlette.responses", EXTRA, PURPOSE)

    async def handle(request: Any) -> Any:
        try:
            _check(guard, request)
        except Refused as error:
            text = f"dialgym view: {error.detail}\n"
            return responses.PlainTextResponse(text, error.status, HEADERS)
        if QUERY in request.query_params:
            response = responses.RedirectResponse(request.url.path, 303, HEADERS)
            set_cookie(response, guard)
            return response
        return responses.Response(content, 200, HEADERS, media_type=f"{kind}; charset=utf-8")

    return handle


def _check(guard: Guard, request: Any) -> None:
    query = request.query_params.get(QUERY, "")
    guard.check_request(request.method, request.headers, request.cookies, query)


async def _query_of(request: Any) -> dict[str, Any]:
    """The parts of the path and the query, and of the JSON that was sent."""
    given = {**request.query_params, **request.path_params}
    if request.method != "POST":
        return given
    try:
        sent = json.loads(await body_of(request, MOST_BYTES))
    except (ValueError, RecursionError) as error:
        raise Refused(400, f"expected JSON ({str(error)[:100]}).") from None
    if not isinstance(sent, dict):
        raise Refused(400, "expected an object in JSON.")
    return {**sent, **given}


def serve_viewer(viewer: Viewer, listener: socket.socket, guard: Guard) -> None:
    """Serve until interrupted.

    Raises:
        ImportError: FastAPI or uvicorn is missing.
    """
    serve(make_app(viewer, guard), listener, PURPOSE)
