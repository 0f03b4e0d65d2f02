"""What a client makes of broken answers, keys, redirections and servers that come back late."""

import json
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from agents.serving.apis import Request, Sampled
from agents.serving.server import Client, LostServer, RolloutServer, ServerError
from tests.support.faulty_server import dribbles_body, faulty_server

ASKED = Request([1], 4, 2, 0)
FOUND = {"tokens": ["token_id:5", "token_id:2"], "token_logprobs": [-1.0, -0.5]}
KEY = "sk-SECRET"


def http(status, body, *headers, length=None):
    """An answer as bytes; with a greater `length` it is cut off."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    size = f"Content-Length: {length or len(content)}"
    lines = [f"HTTP/1.1 {status} X", size, *headers, "", ""]
    return "\r\n".join(lines).encode() + content


@contextmanager
def answering(answer):
    """The address of a server that answers by `answer(path, body)`, and the headers it has seen."""
    seen = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            seen.append(dict(self.headers))
            self.wfile.write(answer(self.path, json.loads(body)))

        do_GET = do_POST

        def log_message(self, format, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", seen
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def client_of(url, sleep=lambda seconds: None, **settings):
    return Client(RolloutServer(url, "weights", **settings), sleep)


def error_of(kind, content, **settings):
    """The text of the error that an answer ends in."""
    with (
        answering(lambda path, body: content) as (url, _),
        pytest.raises(kind) as found,
    ):
        client_of(url, **settings).sample(ASKED)
    return str(found.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (http(200, b"{", length=99), "IncompleteRead"),
        (http(500, b"abc", length=99), "IncompleteRead"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{", "IncompleteRead"),
        (b"garbage\r\n\r\n", "BadStatusLine"),
        (http(200, b"[" * 100_000), "which is no JSON"),
        (http(200, b"<html>"), "which is no JSON"),
        (http(503, {}), "status 503"),
    ],
)
def test_a_broken_answer_is_a_lost_server(content, message):
    said = error_of(LostServer, content)
    assert message in said
    assert len(said) < 500


def test_the_time_of_a_request_is_that_of_its_whole_answer():
    with (
        faulty_server(dribbles_body) as (url, _),
        pytest.raises(LostServer, match="TimeoutError: the answer did not end in time"),
    ):
        client_of(url, timeout=0.1).sample(ASKED)


def test_tokens_that_are_texts_are_no_ids():
    texts = {"choices": [{"logprobs": {**FOUND, "tokens": ["5", "2"]}}]}
    said = error_of(ServerError, http(200, texts))
    assert "expected tokens as token_id:ID (return_tokens_as_token_ids)" in said


@pytest.mark.parametrize("chunks", [False, True])
def test_an_answer_in_parts_is_read_to_its_end(chunks):
    body = json.dumps({"choices": [{"logprobs": FOUND}]}).encode()
    parts = [body[:9], body[9:]]
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    if chunks:
        parts = [b"%x\r\n%s\r\n" % (len(part), part) for part in [*parts, b""]]
    else:
        head = http(200, b"", length=len(body))

    def behave(connection):
        for part in (head, *parts):
            connection.sendall(part)
            time.sleep(0.02)

    with faulty_server(behave) as (url, _):
        assert client_of(url).sample(ASKED).tokens == [5, 2]


@pytest.mark.parametrize(
    ("api", "answer"),
    [
        ("vllm", {"choices": [{"finish_reason": "abort", "logprobs": FOUND}]}),
        ("vllm", {"choices": [{"logprobs": {"tokens": [], "token_logprobs": []}}]}),
        ("sglang", {"meta_info": {"finish_reason": {"type": "abort", "message": "abort of all"}}}),
        ("sglang", {"meta_info": {"output_token_logprobs": []}}),
    ],
)
def test_an_answer_that_was_given_up_is_a_lost_server(api, answer):
    assert "nothing was sampled" in error_of(LostServer, http(200, answer), api=api)


@pytest.mark.parametrize("numbers", [[-1.0], [-1.0, float("nan")]])
def test_each_token_has_a_number(numbers):
    answer = {"choices": [{"logprobs": {**FOUND, "token_logprobs": numbers}}]}
    assert "2 ids with 1 numbers" in error_of(ServerError, http(200, answer))


def test_a_server_may_come_back_after_minutes_and_no_pause_is_for_nothing():
    waited = []
    client = client_of("http://127.0.0.1:9", waited.append)
    message = r"lost .* asked again up to 25 times, with pauses of 602 s"
    with pytest.raises(ServerError, match="no answer in 26 attempts"):  # noqa: SIM117
        with pytest.warns(UserWarning, match=message):
            client.load("weights")
    assert len(waited) == 25
    assert 600 < sum(waited) < 610
    waited.clear()
    client = client_of("http://127.0.0.1:9", waited.append, retries=0)
    with pytest.raises(ServerError, match="no answer in 1 attempts"):
        client.load("weights")
    assert not waited


@pytest.mark.parametrize(("model", "sent"), [(None, False), ("policy", True)])
def test_a_model_is_named_only_where_a_name_was_given(model, sent):
    bodies = []

    def answer(path, body):
        bodies.append(body)
        return http(200, {"choices": [{"logprobs": FOUND}]})

    with answering(answer) as (url, _):
        assert client_of(url, model=model).sample(ASKED) == Sampled([5, 2], [-1.0, -0.5])
    assert ("model" in bodies[0]) is sent
    assert bodies[0].get("model") == model


def test_a_key_is_sent_without_the_end_of_its_line(monkeypatch):
    monkeypatch.setenv("SERVER_KEY", f"{KEY}\n")
    answer = http(200, {"choices": [{"logprobs": FOUND}]})
    with answering(lambda path, body: answer) as (url, seen):
        client_of(url, api_key_env="SERVER_KEY").sample(ASKED)
    assert seen[0]["Authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize("key", [f"{KEY}\nX: y", f"{KEY}\u2026", f"{KEY}\x7f"])
def test_a_key_that_cannot_be_sent_is_one_error_without_it(key, monkeypatch):
    monkeypatch.setenv("SERVER_KEY", key)
    client = client_of("http://127.0.0.1:9", api_key_env="SERVER_KEY")
    for ask in (lambda: client.sample(ASKED), lambda: client.load("weights")):
        with pytest.raises(ValueError, match="environment variable SERVER_KEY") as found:
            ask()
        assert "SECRET" not in str(found.value)


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        (ServerError, http(401, {"error": f"bad key Bearer {KEY}"})),
        (ServerError, http(401, b"x" * 295 + KEY.encode())),
        (ServerError, http(302, b"", f"Location: http://h/{KEY}")),
        (ServerError, http(200, {"choices": [KEY]})),
        (ServerError, http(200, {"choices": [{"logprobs": {**FOUND, "tokens": [KEY]}}]})),
        (LostServer, http(503, KEY.encode())),
        (LostServer, http(200, KEY.encode())),
        (LostServer, f"{KEY}\r\n\r\n".encode()),
        (LostServer, http(200, {"choices": [{"finish_reason": "abort", "text": KEY}]})),
    ],
)
def test_no_error_shows_the_key(kind, content, monkeypatch):
    monkeypatch.setenv("SERVER_KEY", KEY)
    said = error_of(kind, content, api_key_env="SERVER_KEY")
    assert "sk-" not in said
    assert "SECRET" not in said


@pytest.mark.parametrize("status", [302, 303, 307, 308])
def test_a_redirection_is_a_refusal(status, monkeypatch):
    monkeypatch.setenv("SERVER_KEY", KEY)
    found = http(200, {"choices": [{"logprobs": FOUND}]})
    with answering(lambda path, body: found) as (other, seen):
        moved = http(status, b"", f"Location: {other}/x")
        message = f"is redirected, status {status}, to '{other}"
        with answering(lambda path, body: moved) as (url, _):
            client = client_of(url, api_key_env="SERVER_KEY")
            for ask in (lambda: client.sample(ASKED), lambda: client.load("weights")):
                with pytest.raises(ServerError, match=message):
                    ask()
    assert not seen
