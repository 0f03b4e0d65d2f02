"""Odd answers of OpenEnv's servers: one clear error each, without the package."""

import json
import socket
import threading
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from dialgym.bridges import openenv_client
from dialgym.bridges.foreign import NoRoomError
from dialgym.bridges.openenv_client import OpenEnvSession, text_field
from dialgym.errors import ServiceError

URL = "http://server.test"
TEXT = {"text": {"type": "string"}}


@contextmanager
def answering(raw):
    """The address of a server that sends these bytes, and hangs up."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve():
            connection, _ = listener.accept()
            with connection:
                connection.recv(2**16)
                connection.sendall(raw)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        thread.join()


def body(content, length=None):
    length = len(content) if length is None else length
    return b"HTTP/1.0 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (length, content)


def schema(action):
    return body(json.dumps({"action": action}).encode())


def test_a_schema_has_the_field_for_a_text():
    with answering(schema({"properties": TEXT, "required": ["text"]})) as url:
        assert text_field(url) == "text"
    with answering(schema({"properties": TEXT})) as url:
        assert text_field(url) == "text"


@pytest.mark.parametrize(
    ("raw", "told"),
    [
        (body(b"{", length=50), "no answer from the service"),
        (b"garbage\r\n\r\n", "no answer from the service"),
        (body(b"<html>"), "is no schema of OpenEnv"),
        (body(b"[" * 100_000), "is no schema of OpenEnv"),
        (body(b"[1]"), r"/schema: expected an object.*got \[1\]"),
        (schema(None), "action of .*: expected an object.*got null"),
        (schema([]), r"action of .*: expected an object.*got \[\]"),
        (schema({"properties": None}), "properties of the action .*: expected an object.*null"),
        (schema({"properties": {"a": "x"}}), "property 'a' of .*: expected an object.*got \"x\""),
        (schema({"properties": TEXT, "required": None}), "required of .*: expected a list.*null"),
    ],
)
def test_a_schema_that_is_none(raw, told):
    with (
        answering(raw) as url,
        pytest.raises(ServiceError, match=f"^openenv: .*{told}") as caught,
    ):
        text_field(url)
    assert url in str(caught.value)


@pytest.mark.parametrize(
    "url",
    ["http://127.0.0.1:abc", "http://127.0.0.1:99999", "http://127.0.0.1:1/a b", "http://[::1"],
)
def test_an_address_that_cannot_be(url):
    with pytest.raises(ServiceError, match=r"no answer from the service.*check its address"):
        text_field(url)


class Client:
    """A client of OpenEnv's whose resets give or raise one thing."""

    open = 0

    def __init__(self, given):
        self.given = given
        Client.open += 1

    def sync(self):
        return self

    def reset(self, **arguments):
        if isinstance(self.given, Exception):
            raise self.given
        return self.given

    def close(self):
        Client.open -= 1


def session(given, monkeypatch):
    core = SimpleNamespace(GenericEnvClient=lambda **settings: Client(given))
    monkeypatch.setattr(openenv_client, "require", lambda *names: core)
    return OpenEnvSession(URL, "text")


def result(observation, metadata=None):
    return SimpleNamespace(observation=observation, metadata=metadata, reward=0.0, done=False)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (result(None), "an observation of .*: expected an object.*got null"),
        (result("hi"), 'an observation of .*: expected an object.*got "hi"'),
        (result({"text": "x", "metadata": [1]}), r"metadata of .*: expected an object.*got \[1\]"),
        (result({"text": "x"}, [1]), r"metadata of .*: expected an object.*got \[1\]"),
        (json.JSONDecodeError("odd", "", 0), "gave no answer of OpenEnv's protocol.*odd"),
        (AttributeError("no 'get'"), "gave no answer of OpenEnv's protocol.*no 'get'"),
    ],
)
def test_an_answer_that_is_none(given, told, monkeypatch):
    with pytest.raises(ServiceError, match=f"^openenv: .*{told}") as caught:
        session(given, monkeypatch).reset(0)
    assert URL in str(caught.value)


def test_a_server_without_room_and_one_with_an_error_of_its_own(monkeypatch):
    full = RuntimeError("Server error: 1/1 sessions active (code: CAPACITY_REACHED)")
    with pytest.raises(NoRoomError, match=r"takes no further session .*1/1 sessions active"):
        session(full, monkeypatch).reset(0)
    with pytest.raises(RuntimeError, match=r"^Server error: boom"):
        session(RuntimeError("Server error: boom"), monkeypatch).reset(0)


def test_a_forgotten_session_is_closed_by_the_next(monkeypatch):
    session(result({"text": "x"}), monkeypatch).close()  # and those of tests before
    before = Client.open
    forgotten = session(result({"text": "x"}), monkeypatch)
    assert forgotten.reset(0).text == "x"
    del forgotten
    assert Client.open == before + 1
    session(result({"text": "x"}), monkeypatch).close()
    assert Client.open == before
