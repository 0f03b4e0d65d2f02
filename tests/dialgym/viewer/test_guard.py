"""Access to the viewer: token, hosts, origins."""

import json
import sys
import urllib.error
import urllib.parse
import urllib.request

import pytest

from dialgym.io.http_server import Refused
from dialgym.viewer.api import open_viewer
from dialgym.viewer.guard import HEADERS, Guard
from tests.support.browser import viewer_server
from tests.support.waiting import HANG_GUARD

HERE = {"host": "127.0.0.1:8765"}


@pytest.fixture
def guard():
    return Guard(8765, ("box.example",), "secret")


def refused(guard, headers, cookies=None, method="GET", query=""):
    try:
        guard.check_request(method, headers, cookies or {}, query)
    except Refused as error:
        return error.detail
    return None


@pytest.mark.parametrize("host", ["127.0.0.1:8765", "localhost", "[::1]:8765", "box.example:80"])
def test_who_has_the_token_is_answered(guard, host):
    own = {"dialgym-8765": "secret"}
    assert refused(guard, {"host": host}, own) is None
    assert refused(guard, {"host": host, "origin": f"http://{host}"}, own) is None
    assert refused(guard, {"host": host, "sec-fetch-site": "same-origin"}, own) is None
    assert refused(guard, {"host": host, "x-dialgym-token": "secret"}) is None
    assert refused(guard, {"host": host}, query="secret") is None


def test_nobody_else_is(guard):
    assert "it has a token" in refused(guard, HERE)
    assert "it has a token" in refused(guard, HERE, {"dialgym-8765": "guess"})
    assert "it has a token" in refused(guard, HERE, {"dialgym-8766": "secret"})


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8765", "", "127.0.0.1.evil.example"]
)
def test_a_foreign_name_for_this_machine_is_refused(guard, host):
    assert "--allow-host" in refused(guard, {"host": host}, {"dialgym-8765": "secret"})


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "http://127.0.0.1:9999"},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
def test_other_sites_are_refused_even_with_the_token(guard, headers):
    found = refused(guard, {**HERE, **headers}, {"dialgym-8765": "secret"})
    assert found == "this was asked by another site."


def test_forms_cannot_post(guard):
    own = {"dialgym-8765": "secret"}
    headers = {**HERE, "content-type": "text/plain"}
    assert "expected JSON" in refused(guard, headers, own, "POST")
    headers["content-type"] = "application/json; charset=utf-8"
    assert refused(guard, headers, own, "POST") is None


def ask(url, data=None, **headers):
    """Status, headers and body; redirections are not followed."""

    class Stays(urllib.request.HTTPRedirectHandler):
        def redirect_request(self, *args, **kwargs):
            return None

    request = urllib.request.Request(url, data, headers)
    try:
        with urllib.request.build_opener(Stays).open(request, timeout=HANG_GUARD) as answer:
            return answer.status, answer.headers, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.headers, error.read()


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    viewer = open_viewer([], tmp_path_factory.mktemp("view") / "ratings")
    with viewer_server(viewer) as (url, guard):
        yield url, guard


def test_the_printed_address_gives_a_cookie_and_leads_on(server):
    url, guard = server
    status, headers, _ = ask(f"{url}/?token={guard.token}")
    assert (status, headers["location"]) == (303, "/")
    cookie = headers["set-cookie"]
    assert f"{guard.cookie}={guard.token}" in cookie
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    status, headers, body = ask(url, Cookie=cookie.split(";")[0])
    assert status == 200
    assert b"<title>dialgym</title>" in body
    for name, value in HEADERS.items():
        assert headers[name] == value


def test_without_the_token_there_is_nothing(server):
    url, _ = server
    for path in ("/", "/static/main.js", "/api/sources", "/api/about?env=Wordle-v0"):
        status, _, body = ask(url + path)
        assert status == 403
        assert b"it has a token" in body


def test_bad_requests_are_said_to_be(server):
    url, guard = server
    own = {"X-Dialgym-Token": guard.token}
    sent = {**own, "Content-Type": "application/json"}
    for path, data, headers, expected, text in [
        ("/api/dialogues/0", None, own, 404, "there is no source 0"),
        ("/api/games/none/hint", None, own, 404, "no longer there"),
        ("/api/about?env=Wordel-v0", None, own, 400, "Did you mean"),
        ("/api/games", b"[1]", sent, 400, "expected an object"),
        ("/api/games", b"{", sent, 400, "expected JSON"),
        ("/api/games", b"{}", sent, 400, "the request lacks 'env'"),
        ("/api/games", b"{}", own, 415, "expected JSON"),
        ("/api/games", b" " * 2**21, sent, 413, "bytes at most"),
    ]:
        status, _, body = ask(url + path, data, **headers)
        assert (status, text in json.loads(body)["detail"]) == (expected, True), (path, body)
    assert ask(f"{url}/api/nothing", **own)[0] == 404
    assert ask(f"{url}/docs", **own)[0] == 404


NAMES = (
    "os:abort", "dialgym:os:abort", "planted:Task-v0", "planted:lab/Task-v0", "hf:lab/model",
    "agents:ChatAgent", "../../etc/passwd", "/etc/passwd", "http://evil.example", "planted",
)  # fmt: skip
REQUESTS = {
    "env of about": ("/api/about?env={}", None),
    "env of policies": ("/api/policies?env={}", None),
    "env of a game": ("/api/games", {"env": "{}"}),
    "against of a game": ("/api/games", {"env": "Wordle-20-v0", "against": "{}"}),
    "party of a game": ("/api/games", {"env": "Wordle-20-v0", "party": "{}"}),
    "options of a game": ("/api/games", {"env": "Wordle-20-v0", "options": "word={}"}),
    "env of a comparison": ("/api/compare", {"env": "{}", "first": {"policy": "random"}}),
    "policy of a comparison": (
        "/api/compare",
        {"env": "Wordle-20-v0", "first": {"policy": "{}"}, "second": {"policy": "random"}},
    ),
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("where", REQUESTS)
def test_requests_name_nothing_but_what_is_registered(where, name, server, tmp_path, monkeypatch):
    (tmp_path / "planted.py").write_text("raise SystemExit('imported')\n", "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    url, guard = server
    path, data = REQUESTS[where]
    sent = None if data is None else json.dumps(data).replace("{}", name).encode()
    own = {"X-Dialgym-Token": guard.token, "Content-Type": "application/json"}
    status, _, body = ask(url + path.format(urllib.parse.quote(name)), sent, **own)
    assert status == 400, body
    assert name in json.loads(body)["detail"]
    assert "planted" not in sys.modules


def test_an_error_in_a_task_of_ones_own_is_shown(server, monkeypatch, caplog):
    url, guard = server

    def broken(self, *arguments):
        raise IndexError("an error of the task")

    monkeypatch.setattr("dialgym.tasks.wordle.Wordle.initial", broken)
    sent = {"X-Dialgym-Token": guard.token, "Content-Type": "application/json"}
    status, _, body = ask(f"{url}/api/games", b'{"env": "Wordle-20-v0"}', **sent)
    assert status == 500
    assert "IndexError: an error of the task" in json.loads(body)["detail"]
    assert "Traceback" in caplog.text
