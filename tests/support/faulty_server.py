"""Servers that misbehave, each in a thread: what a client has to live with."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Behaviour = Callable[[socket.socket], None]
"""What is done with a connection; it is closed after."""


@contextmanager
def faulty_server(*behaviours: Behaviour) -> Iterator[tuple[str, list[bytes]]]:
    """The URL of a server whose connections meet the behaviours, the last one again and again,
    and the requests that came in."""
    listener = socket.create_server(("127.0.0.1", 0))
    requests: list[bytes] = []
    done = threading.Event()

    def meet(connection: socket.socket, behave: Behaviour) -> None:
        with connection:
            try:
                requests.append(read_request(connection))
                behave(connection)
            except OSError:  # the client has hung up
                pass

    def listen() -> None:
        count = 0
        while not done.is_set():
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            behave = behaviours[min(count, len(behaviours) - 1)]
            threading.Thread(target=meet, args=(connection, behave), daemon=True).start()
            count += 1

    threading.Thread(target=listen, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", requests
    finally:
        done.set()
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def read_request(connection: socket.socket) -> bytes:
    """A request as a whole, head and body."""
    found = b""
    while b"\r\n\r\n" not in found:
        part = connection.recv(65536)
        if not part:
            return found
        found += part
    head, _, body = found.partition(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length:")[2].split()[0])
    while len(body) < length:
        body += connection.recv(65536)
    return head + b"\r\n\r\n" + body


def says(body: bytes, status: str = "200 OK", length: int | None = None) -> Behaviour:
    """Answers, and hangs up; `length` is claimed of the body."""
    claimed = len(body) if length is None else length
    head = f"HTTP/1.1 {status}\r\nContent-Length: {claimed}\r\nConnection: close\r\n\r\n"
    return lambda connection: connection.sendall(head.encode() + body)


def sends(raw: bytes) -> Behaviour:
    """Sends these bytes, and hangs up."""
    return lambda connection: connection.sendall(raw)


def hangs_up(connection: socket.socket) -> None:
    """Says nothing."""


def resets(connection: socket.socket) -> None:
    """Breaks the connection off, so that the client is told by a reset."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")


def is_slow(connection: socket.socket) -> None:
    """Does not answer for half a minute."""
    connection.settimeout(30)
    connection.recv(1)


def dribbles(connection: socket.socket) -> None:
    """Sends a byte of its head every fiftieth of a second, without end."""
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\nX-Long: ")
    for _ in range(1500):
        connection.sendall(b"x")
        time.sleep(0.02)


def dribbles_body(connection: socket.socket) -> None:
    """The same of its body."""
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
    for _ in range(1500):
        connection.sendall(b"x")
        time.sleep(0.02)
