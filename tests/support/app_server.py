"""An ASGI application that is served by a thread of the test's own process."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from dialgym.io.http_server import listening


@contextmanager
def app_server(app: Any, listener: socket.socket | None = None) -> Iterator[str]:
    """Its URL; it is ended after, with whatever is still open.

    Args:
        app: the application.
        listener: the socket; by default one at a port that is free.
    """
    import uvicorn

    listener = listening("test") if listener is None else listener
    server = uvicorn.Server(uvicorn.Config(app, log_level="error"))
    thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive(), "the server has not come up"
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = server.force_exit = True
        thread.join(10)
        listener.close()
