"""HTTP server of the command line: sockets, callers, requests and answers.

Other sites that are open in a browser can send requests to this machine: see `Callers`. Requests
are bounded in size and time; answers are JSON. FastAPI and uvicorn, of the extra `web`,
are imported where a server starts.
"""

import asyncio
import json
import logging
import math
import socket
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from dialgym.optional import check_installed, require

if TYPE_CHECKING:
    from fastapi import FastAPI

EXTRA = "web"
LOOPBACK = ("127.0.0.1", "localhost", "::1")
EVERYWHERE = ("0.0.0.0", "::")
PATIENCE = 30.0
"""Seconds in which the whole request has to arrive."""


class Refused(Exception):
    """Refusal of a request: a status and its reason."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status, self.detail = status, detail


class Callers:
    """Check of the callers of a server: its own name, and no page of another site.

    A foreign name may be pointed at this machine (DNS rebinding), so the `Host` must be known; and
    where the browser says who asks (`Origin`, `Sec-Fetch-Site`), it must be the server's own page.

    Args:
        hosts: names by which the server may be called, beside those of this machine; those that
            stand for every address are no names.
    """

    def __init__(self, hosts: Iterable[str] = ()) -> None:
        self.hosts = {*LOOPBACK, *hosts}.difference(EVERYWHERE)

    def check(self, headers: Mapping[str, str]) -> None:
        """Check the headers of a request, by name in lower case.

        Raises:
            Refused: it is not answered.
        """
        host = headers.get("host", "")
        if _host_name(host) not in self.hosts:
            raise Refused(
                403,
                f"this server is not called {host[:80]!r}; if that is one of its names, start it "
                "with --allow-host NAME.",
            )
        origin = headers.get("origin")
        foreign = origin is not None and origin.partition("://")[2] != host
        if foreign or headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            raise Refused(403, "this was asked by another site.")


def _host_name(host: str) -> str:
    """The name in a `Host` header, without the port."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


class Guarded:
    """ASGI application that answers known callers only, by HTTP or WebSocket.

    Args:
        app: the application.
        callers: who may ask.
    """

    def __init__(self, app: Any, callers: Callers) -> None:
        self.app, self.callers = app, callers

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Hand on a connection, or refuse it: a request by JSON, a WebSocket by closing it."""
        try:
            if scope["type"] in ("http", "websocket"):
                pairs = scope["headers"]
                self.callers.check({name.decode(): text.decode("latin-1") for name, text in pairs})
        except Refused as error:
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1008, "reason": error.detail})
            else:
                answer = json_answer(error.status, {"detail": error.detail})
                await answer(scope, receive, send)
        else:
            await self.app(scope, receive, send)


def fastapi_app(purpose: str, **kwargs: Any) -> "FastAPI":
    """An application without routes, not even those of FastAPI's own documentation.

    Raises:
        ImportError: FastAPI is missing.
    """
    fastapi = require("fastapi", EXTRA, purpose)
    app: FastAPI = fastapi.FastAPI(openapi_url=None, **kwargs)
    return app


async def body_of(request: Any, most: int) -> bytes:
    """The body of a request.

    Raises:
        Refused: it has more than `most` bytes, or has not come in within `PATIENCE`.
    """
    try:
        return await asyncio.wait_for(_body(request, most), PATIENCE)
    except TimeoutError:
        raise Refused(408, f"expected the request within {PATIENCE:g} s.") from None


async def _body(request: Any, most: int) -> bytes:
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > most:
            raise Refused(413, f"expected {most:,} bytes at most.")
        parts.append(part)
    return b"".join(parts)


def json_answer(status: int, content: Any, headers: Mapping[str, str] | None = None) -> Any:
    """An answer in JSON."""
    responses = require("starlette.responses", EXTRA, "a server")
    text = json.dumps(content, allow_nan=False)
    return responses.Response(text, status, headers, media_type="application/json")


def finite(value: Any) -> Any:
    """Plain values with null in the place of numbers that JSON cannot hold (NaN, infinity)."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): finite(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [finite(part) for part in value]
    return value


def serve(app: Any, listener: socket.socket, purpose: str) -> None:
    """Serve at a socket until interrupted.

    Raises:
        ImportError: uvicorn is missing.
    """
    uvicorn = require("uvicorn", EXTRA, purpose)
    config = uvicorn.Config(
        app, log_level="warning", access_log=False, lifespan="on", timeout_keep_alive=60,
        timeout_graceful_shutdown=5,
    )  # fmt: skip
    server = uvicorn.Server(config)
    log = logging.getLogger("uvicorn.error")

    def is_worth_reporting(record: logging.LogRecord) -> bool:
        return not server.force_exit  # a second Ctrl-C, by which all is cut short

    log.addFilter(is_worth_reporting)
    try:
        server.run(sockets=[listener])
    finally:
        log.removeFilter(is_worth_reporting)


def listening(command: str, host: str = "127.0.0.1", port: int = 0) -> socket.socket:
    """A socket that listens; port 0 is any that is free.

    Args:
        command: who listens, for messages.
        host, port: where.

    Raises:
        ImportError: FastAPI or uvicorn is missing.
        OSError: the port is taken, or the host is not of this machine.
    """
    check_installed(EXTRA, f"dialgym {command}", "fastapi", "uvicorn")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family, backlog=1024)
    except OSError as error:
        raise OSError(
            f"{command} cannot listen at {host}, port {port}: {error.strerror or error}. Choose "
            "another one (--port 0 takes any that is free)."
        ) from error
    # asyncio sets it only for sockets that name their protocol: without it, head and body of an
    # answer are 40 ms apart
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def address_of(host: str, listener: socket.socket) -> str:
    """URL of a server on this machine, by the loopback address where it listens everywhere.

    Args:
        host: where it listens, as it was asked for.
        listener: its socket.
    """
    bound, port = listener.getsockname()[:2]
    name = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(bound, host)
    return f"http://[{name}]:{port}" if ":" in name else f"http://{name}:{port}"
