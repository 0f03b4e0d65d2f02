"""The addresses that `dialgym serve` prints are those that the server answers to."""

import socket
from urllib.parse import urlsplit

import pytest

from dialgym.bridges import openenv
from dialgym.io import http_server
from dialgym.tasks.visual_dialogue import server as visual
from tests.support.commands import succeed

HOSTS = [
    ("127.0.0.1", "127.0.0.1"),
    ("localhost", "localhost"),
    ("0.0.0.0", "127.0.0.1"),
    ("::1", "[::1]"),
    ("::", "[::1]"),
]


@pytest.fixture
def callers(monkeypatch):
    """Who may call the servers, which end at once."""
    found = []
    monkeypatch.setattr(openenv, "app", lambda id, sessions, **settings: None)
    monkeypatch.setattr(http_server, "serve", lambda app, *more: found.append(app.callers))
    monkeypatch.setattr(visual, "serve_bots", lambda *given: found.append(given[-1]))
    return found


def needs(host):
    if ":" not in host:
        return
    try:
        socket.create_server((host, 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("no IPv6 here")


@pytest.mark.parametrize(("host", "shown"), HOSTS)
@pytest.mark.parametrize(
    "command", [("openenv", "Wordle-20-v0"), ("visual", "-s", "pool={name: scenes, scenes: 4}")]
)
def test_the_server_answers_to_the_address_that_is_printed(command, host, shown, callers):
    needs(host)
    text = succeed("serve", *command, "--host", host, "--port", "0")
    url = text[text.index("http://") :].partition(";")[0]
    assert url.startswith(f"http://{shown}:")
    assert urlsplit(url).port
    callers[0].check({"host": urlsplit(url).netloc})
