"""The client against servers that misbehave: it comes back in bounded time, and says why."""

import os
import pickle
import re
import shutil
import socket
import ssl
import subprocess
import threading
from contextlib import suppress

import pytest

from dialgym.tasks.visual_dialogue.client import Client, RefusedError, RemoteError
from tests.support.faulty_server import (
    dribbles,
    dribbles_body,
    faulty_server,
    hangs_up,
    is_slow,
    read_request,
    resets,
    says,
    sends,
)
from tests.support.waiting import HANG_GUARD

QUICK = {"timeout": HANG_GUARD, "retries": 2, "backoff": 0.01}
IMPATIENT = {**QUICK, "timeout": 0.3}


def ask(url, **settings):
    return Client(url, **{**QUICK, **settings}).post("/step_rank", b"caption=a")


def test_what_is_sent():
    with faulty_server(says(b'["yes", 0.5]')) as (url, requests):
        assert ask(url + "/prefix/") == ["yes", 0.5]
    head, _, body = requests[0].partition(b"\r\n\r\n")
    assert head.startswith(b"POST /prefix/step_rank HTTP/1.1\r\n")
    assert b"Content-Type: application/x-www-form-urlencoded" in head
    assert body == b"caption=a"


FAULTS = {
    "hangs up": (hangs_up, "Remote end closed connection|reset"),
    "resets": (resets, "reset|closed"),
    "slow": (is_slow, "it took too long"),
    "dribbles": (dribbles, "it took too long"),
    "dribbles body": (dribbles_body, "it took too long"),
    "500": (says(b"Traceback ...", "500 Internal Server Error"), "status 500: Traceback"),
    "503": (says(b"busy", "503 Service Unavailable"), "status 503: busy"),
    "429": (says(b"slow down", "429 Too Many Requests"), "status 429: slow down"),
    "garbage": (sends(b"\x00\x01\x02 nothing of HTTP\r\n\r\n"), "."),
    "html": (says(b"<html>hello"), "expected JSON; got b'<html>hello"),
    "no UTF-8": (says(b'"\xff"'), "expected JSON"),
    "deep": (says(b"[" * 100_000), "expected JSON"),
    "cut": (says(b'["yes"', length=100), "breaks off 94 bytes before its end"),
    "chunk cut": (
        sends(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n[1"),
        "IncompleteRead",
    ),
    "long line": (sends(b"HTTP/1.1 200 OK\r\nX: " + b"x" * 70_000), "."),
    "large": (says(b" " * 3000), "more than 2,000 bytes"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_bounded_and_clear(name):
    fault, reason = FAULTS[name]
    with faulty_server(fault) as (url, requests):
        settings = IMPATIENT if fault in (is_slow, dribbles, dribbles_body) else QUICK
        client = Client(url, **settings, most=200_000 if name == "deep" else 2000)
        with pytest.raises(RemoteError) as caught:
            client.post("/step_rank", b"caption=a")
        assert not isinstance(caught.value, RefusedError)
    message = str(caught.value)
    assert re.match(rf"{url}/step_rank: no answer in 3 attempts and \d+\.\d s", message)
    assert re.search(reason, message)
    assert "Start the server (`dialgym serve visual`)" in message
    assert len(requests) == 3


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_that_passes_does_no_harm(name):
    fault = FAULTS[name][0]
    is_late = fault in (is_slow, dribbles, dribbles_body)
    with faulty_server(fault, says(b'"well"')) as (url, requests):
        settings = {**IMPATIENT, "retries": 100} if is_late else QUICK
        assert ask(url, most=2000, **settings) == "well"
        assert len(requests) >= 2 if is_late else len(requests) == 2


@pytest.mark.parametrize("status", ["400 Bad Request", "404 Not Found", "302 Found"])
def test_a_refusal_is_final(status):
    with faulty_server(says(b'{"detail": "history: missing."}', status)) as (url, requests):
        with pytest.raises(RefusedError, match=f"status {status[:3]}: .*history: missing"):
            ask(url)
        assert len(requests) == 1


def test_nobody_is_there():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    with pytest.raises(RemoteError, match=r"no answer in 3 attempts.*refused"):
        ask(url)
    with pytest.raises(RemoteError, match="no answer in 1 attempts"):
        ask("http://no-such-host.invalid:1", retries=0)


def test_the_longest_wait_is_the_sum_of_attempts_and_pauses():
    assert Client("http://a", timeout=2, retries=3, backoff=1).longest == 4 * 2 + 1 + 2 + 4
    assert (
        Client("http://a", timeout=1, retries=6, backoff=1).longest == 7 + 1 + 2 + 4 + 8 + 10 + 10
    )


def keeps_open(times):
    """Answers so often, and then closes the connection without a word."""

    def behave(connection):
        for number in range(times):
            if number:
                read_request(connection)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n1")

    return behave


def test_a_connection_is_used_again_and_one_that_was_closed_is_renewed():
    with faulty_server(keeps_open(2)) as (url, requests):
        client = Client(url, timeout=HANG_GUARD, retries=0)
        assert [client.post("/a", b"") for _ in range(6)] == [1] * 6
        assert len(requests) == 3  # that is how many connections there were, without a retry


def test_threads_and_copies_have_connections_of_their_own():
    with faulty_server(keeps_open(100)) as (url, requests):
        client = Client(url, timeout=HANG_GUARD, retries=0)
        threads = [threading.Thread(target=client.post, args=("/a", b"")) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(requests) == 4
        assert pickle.loads(pickle.dumps(client)).post("/a", b"") == 1
        assert len(requests) == 5


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_process_does_not_talk_into_its_parent_s_connection():
    with faulty_server(keeps_open(100)) as (url, requests):
        client = Client(url, timeout=HANG_GUARD, retries=0)
        assert client.post("/a", b"") == 1
        child = os.fork()
        if not child:
            os._exit(0 if client.post("/a", b"") == 1 else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert len(requests) == 2
        assert client.post("/a", b"") == 1
        assert len(requests) == 2


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"url": "127.0.0.1:5000"}, "expected http://HOST:PORT; got '127.0.0.1:5000'"),
        ({"url": "ftp://a"}, "expected http://HOST:PORT"),
        ({"url": "http://a:b"}, r"expected http://HOST:PORT; got 'http://a:b' \("),
        ({"url": "http://a:99999"}, r"expected http://HOST:PORT; got 'http://a:99999' \("),
        ({"url": "http://[::1"}, r"expected http://HOST:PORT; got 'http://\[::1' \("),
        ({"timeout": 0}, "expected a timeout above 0"),
        ({"timeout": float("inf")}, "timeout of a client must be a finite number"),
        ({"retries": -1}, "retries of a client must be a whole number from 0"),
        ({"backoff": -1}, "a backoff of 0 or more"),
    ],
)
def test_arguments_that_cannot_be(settings, message):
    with pytest.raises(ValueError, match=message):
        Client(**{"url": "http://a", **settings})


@pytest.mark.skipif(shutil.which("openssl") is None, reason="there is no openssl to certify with")
def test_an_encrypted_server_has_deadlines_too_and_a_certificate(tmp_path, monkeypatch):
    command = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext"
    files = ["-keyout", tmp_path / "key", "-out", tmp_path / "certificate"]
    subprocess.run(
        [*command.split(), "subjectAltName=IP:127.0.0.1", *files], check=True, capture_output=True
    )
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(tmp_path / "certificate", tmp_path / "key")

    def encrypted(behave):
        return lambda connection: behave(context.wrap_socket(connection, server_side=True))

    def answers(connection):
        read_request(connection)
        says(b'"well"')(connection)

    def never(connection):
        read_request(connection)
        dribbles(connection)

    def run(behaviour, **settings):
        listener = socket.create_server(("127.0.0.1", 0))
        url = f"https://127.0.0.1:{listener.getsockname()[1]}"

        def meet():
            with listener.accept()[0] as connection, suppress(OSError):
                encrypted(behaviour)(connection)

        threading.Thread(target=meet, daemon=True).start()
        with listener:
            return Client(url, **{"retries": 0, **settings}).post("/a", b"")

    with pytest.raises(RemoteError, match=r"(?i)certificate"):
        run(answers, timeout=HANG_GUARD)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "certificate"))
    assert run(answers, timeout=HANG_GUARD) == "well"
    with pytest.raises(RemoteError, match="it took too long"):
        run(never, timeout=0.5)
