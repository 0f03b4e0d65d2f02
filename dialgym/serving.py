"""What the HTTP servers of the command line share: their socket, requests and answers.

Requests come in whole and within limits; answers are JSON. FastAPI and uvicorn, of the extra `web`,
are imported where a server starts.
"""

import asyncio
import json
import math
import socket
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dialgym.optional import require

if TYPE_CHECKING:
    from fastapi import FastAPI

EXTRA = "web"
PATIENCE = 30.0  # seconds in which a request has to come in whole


class Refused(Exception):
    """A request is refused with a status, and why."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status, self.detail = status, detail


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
    uvicorn.Server(config).run(sockets=[listener])


def listening(command: str, host: str = "127.0.0.1", port: int = 0) -> socket.socket:
    """A socket that listens; port 0 is any that is free.

    Args:
        command: who listens, for messages.
        host, port: where.

    Raises:
        OSError: the port is taken, or the host is not of this machine.
    """
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
