"""HTTP client with a deadline for each attempt, a number of attempts, and bounded answers.

The read timeout of usual libraries starts again with each byte, so that a server which sends one
now and then holds its client for ever. Here a timer hangs up at the end of an attempt.
"""

import json
import os
import socket
import threading
import time
from contextlib import suppress
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any
from urllib.parse import urlsplit

from dialgym.errors import ServiceError, finite_number, whole_number

SLOWEST = 10.0  # seconds, the longest pause between two attempts
AGAIN = (408, 429)
"""Statuses below 500 after which the same request may succeed."""


class RemoteError(ServiceError):
    """No usable answer from a server."""


class RefusedError(RemoteError):
    """Refusal of a request by a server: another attempt would not help."""


class _Fault(Exception):
    """A failed attempt, after which another one may succeed."""


class Client:
    """Client that sends forms to one server and reads answers in JSON; threads may share it.

    A request is tried again after a refused or broken connection, a timeout, a status of 5xx, 408
    or 429, and an answer that is no JSON; never after another 4xx. It must be harmless to repeat.
    Each thread keeps a connection of its own; a copy made by pickling or forking begins with none.
    Redirects are not followed, proxies are not used.

    Args:
        url: ``http://HOST:PORT``, also with ``https`` and with a path before those of requests.
        timeout: seconds that one attempt may take in all.
        retries: how many more attempts there are after the first.
        backoff: seconds before the second attempt; the pause doubles each time, up to 10 s.
        most: bytes of the longest answer that is read.

    Raises:
        ValueError: an argument that cannot be.
    """

    def __init__(
        self,
        url: str,
        timeout: float = 30.0,
        retries: int = 5,
        backoff: float = 0.25,
        most: int = 2**20,
    ) -> None:
        try:
            parts = urlsplit(str(url))
            port = parts.port
        except ValueError as error:
            raise ValueError(
                f"url of a server: expected http://HOST:PORT; got {url!r} ({error})."
            ) from None
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query:
            raise ValueError(f"url of a server: expected http://HOST:PORT; got {url!r}.")
        self.url = str(url).rstrip("/")
        self._secure, self._host, self._path = parts.scheme == "https", parts.hostname, parts.path
        self._port = port or (443 if self._secure else 80)
        self.timeout = finite_number("timeout of a client", timeout)
        self.backoff = finite_number("backoff of a client", backoff)
        self.retries = whole_number("retries", retries, "a client", 0)
        self.most = whole_number("most", most, "a client")
        if self.timeout <= 0 or self.backoff < 0:
            raise ValueError(
                f"client of {self.url}: expected a timeout above 0 and a backoff of 0 or more; got "
                f"{timeout!r} and {backoff!r}."
            )
        self._own = threading.local()

    @property
    def longest(self) -> float:
        """Seconds after which `post` returns, whatever the server does."""
        return (self.retries + 1) * self.timeout + sum(map(self._pause, range(self.retries)))

    def post(self, path: str, form: bytes) -> Any:
        """Send a form and return the answer.

        Args:
            path: beginning with ``/``.
            form: the fields, encoded as ``application/x-www-form-urlencoded``.

        Raises:
            RefusedError: the server does not take such a request.
            RemoteError: all attempts failed; the message has the last reason and what to do.
        """
        start, last = time.monotonic(), ""
        for attempt in range(self.retries + 1):
            if attempt:
                time.sleep(self._pause(attempt - 1))
            try:
                return self._attempt(path, form)
            except (_Fault, OSError, HTTPException) as error:
                self._drop()
                if isinstance(error, RefusedError):
                    raise
                last = _said(error)
        spent = time.monotonic() - start
        raise RemoteError(
            f"{self.url}{path}: no answer in {self.retries + 1} attempts and {spent:.1f} s (the "
            f"last: {last}). Start the server (`dialgym serve visual`), check its address, or give "
            "it more time (timeout, retries)."
        )

    def _pause(self, attempt: int) -> float:
        return min(self.backoff * 2**attempt, SLOWEST)

    def _attempt(self, path: str, form: bytes) -> Any:
        connection, used = self._connection()
        deadline = time.monotonic() + self.timeout
        watch = threading.Timer(self.timeout, _hang_up, (connection,))
        watch.start()
        try:
            try:
                status, body = self._exchange(connection, path, form)
            except (OSError, HTTPException):
                if not used or time.monotonic() >= deadline:
                    raise
                connection.close()  # the server may have closed it in the meantime
                status, body = self._exchange(connection, path, form)
        except (_Fault, OSError, HTTPException):
            if time.monotonic() >= deadline:
                raise TimeoutError from None
            raise
        finally:
            watch.cancel()
        return self._checked(path, status, body)

    def _exchange(self, connection: HTTPConnection, path: str, form: bytes) -> tuple[int, bytes]:
        if connection.sock is None:
            connection.connect()
            sock: Any = connection.sock
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        connection.request("POST", self._path.rstrip("/") + path, form, headers)
        response = connection.getresponse()
        body = response.read(self.most + 1)
        if len(body) > self.most:
            raise _Fault(f"an answer of more than {self.most:,} bytes")
        if response.length:  # `read` of a number of bytes does not notice missing ones
            raise _Fault(f"an answer that breaks off {response.length:,} bytes before its end")
        if response.will_close:
            connection.close()
        return response.status, body

    def _checked(self, path: str, status: int, body: bytes) -> Any:
        if status != 200:
            text = body[:300].decode("utf-8", "replace").strip()
            if 300 <= status < 500 and status not in AGAIN:
                raise RefusedError(f"{self.url}{path}: status {status}: {text}")
            raise _Fault(f"status {status}: {text}")
        try:
            return json.loads(body)
        except (ValueError, RecursionError):
            raise _Fault(f"expected JSON; got {body[:60]!r}") from None

    def _connection(self) -> tuple[HTTPConnection, bool]:
        """This thread's connection, and True if it is open."""
        if getattr(self._own, "process", None) != os.getpid():
            kind = HTTPSConnection if self._secure else HTTPConnection
            self._own.connection = kind(self._host, self._port, timeout=self.timeout)
            self._own.process = os.getpid()
        connection: HTTPConnection = self._own.connection
        return connection, connection.sock is not None

    def _drop(self) -> None:
        """Close this thread's connection."""
        if getattr(self._own, "process", None) == os.getpid():
            self._own.connection.close()

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_own": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _own=threading.local())


def _said(error: BaseException) -> str:
    if isinstance(error, TimeoutError):
        return "it took too long"
    return " ".join(str(error).split()) or type(error).__name__


def _hang_up(connection: HTTPConnection) -> None:
    """End all reads and writes of a connection, in whichever thread they wait."""
    sock = connection.sock
    if sock is not None:
        with suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)
