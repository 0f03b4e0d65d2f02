"""A service of a language model in a thread of the test's own process: it answers by a rule."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Rule = Callable[[dict[str, Any]], str]
"""Text for the body of a request."""


class ChatServer:
    """What came in, and the URL.

    Attributes:
        bodies: of the requests, as they came.
        most: most requests that were answered at one time.
    """

    def __init__(self, rule: Rule) -> None:
        self.rule, self.url = rule, ""
        self.bodies: list[dict[str, Any]] = []
        self.most = self._now = 0
        self._lock = threading.Lock()

    def answer(self, body: dict[str, Any]) -> dict[str, Any]:
        """A completion."""
        with self._lock:
            self.bodies.append(body)
            self._now += 1
            self.most = max(self.most, self._now)
        try:
            return completion(self.rule(body))
        finally:
            with self._lock:
                self._now -= 1


@contextmanager
def chat_server(rule: Rule) -> Iterator[ChatServer]:
    """A server that is ended after."""
    served = ChatServer(rule)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            known = self.path == "/v1/chat/completions"
            content = json.dumps(served.answer(body) if known else {}).encode()
            self.send_response(200 if known else 404)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format, *args):
            pass

    class Server(ThreadingHTTPServer):
        request_queue_size = 128
        daemon_threads = True

    server = Server(("127.0.0.1", 0), Handler)
    served.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield served
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def completion(text: str | None, **choice: Any) -> dict[str, Any]:
    """The JSON of an answer."""
    message = {"role": "assistant", "content": text}
    return {
        "id": "completion",
        "object": "chat.completion",
        "created": 0,
        "model": "stub",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop", **choice}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12},
    }
