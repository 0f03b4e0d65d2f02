"""An HTTP client that always comes back: each attempt has a deadline, and there are only so many.

A read timeout, as usual libraries have it, begins anew with each byte, so that a server which sends
one now and then holds its client for ever. Here the sockets themselves know when an attempt has to
be over. That, and a response of bounded length, is all that this adds to `http.client`.
"""

import json
import os
import socket
import ssl
import threading
import time
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any, Protocol
from urllib.parse import urlsplit

from dialgym.errors import finite_number, whole_number

SLOWEST = 10.0  # seconds, the longest pause between two attempts
AGAIN = (408, 429)
"""Statuses below 500 after which the same request may succeed."""


class RemoteError(ConnectionError):
    """A server gave no answer that could be used."""


class RefusedError(RemoteError):
    """A server says that the request is bad: trying again would not help."""


class _Fault(Exception):
    """An attempt failed in a way that another one may not."""


class Client:
    """Sends forms to one server and reads the JSON that it answers; safe to share by threads.

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
        parts = urlsplit(str(url))
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query:
            raise ValueError(f"url of a server: expected http://HOST:PORT; got {url!r}.")
        self.url = str(url).rstrip("/")
        self._secure, self._host, self._path = parts.scheme == "https", parts.hostname, parts.path
        self._port = parts.port or (443 if self._secure else 80)
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
        """Seconds after which `post` has come back, whatever the server does."""
        return (self.retries + 1) * self.timeout + sum(map(self._pause, range(self.retries)))

    def post(self, path: str, form: bytes) -> Any:
        """The JSON that the server answers to a form.

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
            f"last: {last}). Start the server (`dialgym serve-visual`), check its address, or give "
            "it more time (timeout, retries)."
        )

    def _pause(self, attempt: int) -> float:
        return min(self.backoff * 2**attempt, SLOWEST)

    def _attempt(self, path: str, form: bytes) -> Any:
        deadline = time.monotonic() + self.timeout
        connection, used = self._connection(deadline)
        try:
            status, body = self._exchange(connection, path, form)
        except (OSError, HTTPException):
            if not used or time.monotonic() >= deadline:
                raise
            self._drop()  # the server may have closed it while nobody looked
            connection, _ = self._connection(deadline)
            status, body = self._exchange(connection, path, form)
        return self._checked(path, status, body)

    def _exchange(self, connection: HTTPConnection, path: str, form: bytes) -> tuple[int, bytes]:
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        connection.request("POST", self._path.rstrip("/") + path, form, headers)
        response = connection.getresponse()
        body = response.read(self.most + 1)
        if len(body) > self.most:
            raise _Fault(f"an answer of more than {self.most:,} bytes")
        if response.length:  # `read` of a number of bytes does not miss what is missing
            raise _Fault(f"an answer that breaks off {response.length:,} bytes before its end")
        if response.will_close:
            self._drop()
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

    def _connection(self, deadline: float) -> tuple[HTTPConnection, bool]:
        """This thread's connection, and whether it was used before."""
        used = getattr(self._own, "process", None) == os.getpid()
        if not used:
            kind = _SecureConnection if self._secure else _Connection
            self._own.connection = kind(self._host, self._port)
            self._own.process = os.getpid()
        connection: Any = self._own.connection
        connection.deadline = deadline
        return connection, used

    def _drop(self) -> None:
        """Close this thread's connection."""
        if getattr(self._own, "process", None) == os.getpid():
            self._own.connection.close()
        self._own.process = None

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_own": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _own=threading.local())


def _said(error: BaseException) -> str:
    if isinstance(error, TimeoutError):
        return "it took too long"
    return " ".join(str(error).split()) or type(error).__name__


class _HasDeadline(Protocol):
    deadline: float


def _left(owner: _HasDeadline) -> float:
    """Seconds until the deadline."""
    left = owner.deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


class _Socket(socket.socket):
    """A socket whose reads and writes end at the deadline of its connection."""

    owner: _HasDeadline

    def recv_into(self, *args: Any) -> int:
        self.settimeout(_left(self.owner))
        return super().recv_into(*args)

    def sendall(self, *args: Any) -> None:
        self.settimeout(_left(self.owner))
        super().sendall(*args)


class _SecureSocket(ssl.SSLSocket):
    """The same, encrypted."""

    owner: _HasDeadline

    def recv_into(self, *args: Any) -> int:
        self.settimeout(_left(self.owner))
        return super().recv_into(*args)

    def send(self, *args: Any) -> int:
        self.settimeout(_left(self.owner))
        return super().send(*args)


class _Connection(HTTPConnection):
    """A connection with a deadline."""

    deadline: float

    def connect(self) -> None:
        plain = socket.create_connection((self.host, self.port), _left(self))
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sock = _Socket(plain.family, plain.type, plain.proto, plain.detach())
        self.sock.owner = self


class _SecureConnection(HTTPSConnection):
    """The same, encrypted; the server's certificate is checked."""

    deadline: float

    def connect(self) -> None:
        context = ssl.create_default_context()
        context.sslsocket_class = _SecureSocket
        plain = socket.create_connection((self.host, self.port), _left(self))
        plain.settimeout(_left(self))  # of the handshake
        secure: Any = context.wrap_socket(plain, server_hostname=self.host)
        secure.owner = self
        self.sock = secure
