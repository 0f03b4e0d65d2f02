"""The guard before an application: who sees anything of it; and what a server needs."""

import asyncio

import pytest

from dialgym.io.http_server import Callers, Guarded, listening

KINDS = ("http", "websocket")


def first_answer(kind, headers):
    """The first message that a caller gets."""
    pytest.importorskip("starlette", reason="needs the extra `web`")
    sent = []

    async def app(scope, receive, send):
        await send({"type": "handed on"})

    async def send(message):
        sent.append(message)

    pairs = [(name.encode(), text.encode("latin-1")) for name, text in headers.items()]
    guarded = Guarded(app, Callers(["here.example"]))
    asyncio.run(guarded({"type": kind, "headers": pairs}, None, send))
    return sent[0]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("host", ["127.0.0.1:8000", "localhost", "here.example"])
def test_those_who_may_ask_are_handed_on(kind, host):
    assert first_answer(kind, {"host": host}) == {"type": "handed on"}
    own = {"host": host, "origin": f"http://{host}"}
    assert first_answer(kind, own) == {"type": "handed on"}


@pytest.mark.parametrize(
    "headers",
    [{"host": "\xe9vil.example"}, {}, {"host": "localhost", "origin": "http://evil.example"}],
)
def test_others_are_refused(headers):
    assert first_answer("http", headers)["status"] == 403
    closed = first_answer("websocket", headers)
    assert (closed["type"], closed["code"]) == ("websocket.close", 1008)
    assert closed["reason"]


def test_what_is_no_call_is_handed_on():
    assert first_answer("lifespan", {}) == {"type": "handed on"}


def test_a_server_says_what_is_missing_before_it_tells_its_address(monkeypatch):
    monkeypatch.setattr("dialgym.optional.find_spec", lambda module: None)
    with pytest.raises(ImportError, match=r"dialgym view needs fastapi, uvicorn.*dialgym\[web\]"):
        listening("view")


def test_a_port_that_is_taken_is_one_clear_error():
    pytest.importorskip("fastapi", reason="needs the extra `web`")
    pytest.importorskip("uvicorn", reason="needs the extra `web`")
    with listening("view") as listener:
        port = listener.getsockname()[1]
        message = rf"view cannot listen at 127\.0\.0\.1, port {port}: .*--port 0"
        with pytest.raises(OSError, match=message):
            listening("view", port=port)
