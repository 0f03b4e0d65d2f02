"""Services of language models: failures they mark, keys that stay unseen, odd addresses."""

import asyncio
import json

import pytest

from dialgym.io.chat_client import ChatClient, NoCompletionError
from dialgym.io.chat_service import (
    CompletionRefusedError,
    HttpService,
    ServiceFault,
    _certificates,
    completion_of,
    without_surrogates,
)
from dialgym.io.model_settings import ModelSettings
from dialgym.io.tape import Tape
from tests.support.chat_server import completion

httpx = pytest.importorskip("httpx", reason="the extra lm")
respx = pytest.importorskip("respx", reason="the extra dev")

URL = "http://model.test/v1"
KEY = "sk-very/secret-and-long"


async def no_time(seconds):
    """Sleep not at all."""


def ask(tape=None, content="hello", **settings):
    client = ChatClient(ModelSettings("m", base_url=URL, **settings), tape, sleep=no_time)
    return asyncio.run(client.complete([{"role": "user", "content": content}], where="here"))


@pytest.fixture
def service(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with respx.mock(base_url=URL, assert_all_called=False) as router:
        yield router.post("/chat/completions")


@pytest.mark.parametrize(
    "choice",
    [
        {"finish_reason": "abort"},
        {"finish_reason": "error"},
        {"error": {"code": 502, "message": "provider"}},
    ],
)
def test_what_the_service_marks_as_failed_is_asked_again_and_not_recorded(
    service, choice, tmp_path
):
    failed = httpx.Response(200, json=completion("I th", **choice))
    service.side_effect = [failed, httpx.Response(200, json=completion("I think so"))]
    assert ask(Tape(tmp_path / "tape")).text == "I think so"
    assert len((tmp_path / "tape").read_text("utf-8").splitlines()) == 1
    service.side_effect = None
    service.return_value = failed
    with pytest.raises(NoCompletionError, match=r"in 1 attempts .*the service has failed: "):
        ask(Tape(tmp_path / "none"), retries=0)
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("end", ["\n", "\r\n", "  "])
def test_white_space_around_a_key_is_left_out(service, end, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", f" {KEY}{end}")
    service.return_value = httpx.Response(200, json=completion("hi"))
    assert ask(retries=0).text == "hi"
    assert service.calls[0].request.headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize("key", ["sk-one\nsk-two", "sk-sécrét", "sk-\x7fone"])
def test_a_key_that_no_header_can_hold_is_refused_by_its_variable_s_name(service, key, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with pytest.raises(
        CompletionRefusedError, match=r"^here: the environment variable OPENAI_API_KEY has a key"
    ) as caught:
        ask()
    assert "sk-" not in str(caught.value)
    assert service.call_count == 0


@pytest.mark.parametrize("padding", [0, 280 - len(KEY) // 2, 60, 70])
@pytest.mark.parametrize("status", [200, 401, 503])
def test_no_part_of_a_key_is_shown_wherever_a_body_is_cut(service, status, padding):
    for said in (KEY, KEY.replace("/", "\\/")):
        body = '{"error": "' + "x" * padding + said + '"}'
        service.return_value = httpx.Response(status, text=body)
        with pytest.raises((CompletionRefusedError, NoCompletionError)) as caught:
            ask(retries=0)
        assert "sk-very" not in str(caught.value)


def test_a_redirection_is_named_and_not_followed(service):
    there = f"http://other.test/v1?key={KEY}"
    service.return_value = httpx.Response(307, headers={"location": there})
    said = r"status 307\. It sends on to 'http://other\.test/v1\?key=.*', which is not asked"
    with pytest.raises(CompletionRefusedError, match=said) as caught:
        ask()
    assert KEY not in str(caught.value)


def test_a_failed_choice_and_an_error_on_the_way_show_no_key(service):
    failed = completion(None, error={"message": "y" * 280 + KEY})
    for answer in (httpx.Response(200, json=failed), httpx.ReadError(f"cut at {KEY}")):
        service.side_effect = [answer]
        with pytest.raises(NoCompletionError) as caught:
            ask(retries=0)
        assert "sk-very" not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:abc/v1",
        "http://127.0.0.1:99999/v1",
        "http://127.0.0.1:1/v1\n",
        " http://127.0.0.1:1/v1",
        "http://h ost/v1",
    ],
)
def test_an_address_that_cannot_be_is_one_error(url):
    with pytest.raises(ValueError, match=r"base_url: expected http://HOST:PORT/v1 with a PORT"):
        HttpService(ModelSettings("m", base_url=url))


@pytest.mark.parametrize("error", [httpx.InvalidURL("odd"), UnicodeError("odd")])
def test_a_request_that_cannot_be_sent_is_not_tried_again(service, error):
    service.side_effect = error
    with pytest.raises(CompletionRefusedError, match=rf"^here: .*{URL} cannot be sent .*odd"):
        ask()
    assert service.call_count == 1


@pytest.mark.parametrize(
    ("variable", "value"), [("ALL_PROXY", "foo://127.0.0.1:9"), ("SSL_CERT_FILE", "none.pem")]
)
def test_proxies_and_certificates_that_cannot_be_are_one_error(variable, value, monkeypatch):
    _certificates.cache_clear()
    monkeypatch.setenv(variable, value)
    with pytest.raises(CompletionRefusedError, match=rf"^here: no connection .* {variable}"):
        ask()


def test_an_endless_count_is_no_completion():
    content = b'{"choices": [{"message": {"content": "x"}}], "usage": {"prompt_tokens": Infinity}}'
    with pytest.raises(ServiceFault, match=r"expected a chat completion; got .*OverflowError"):
        completion_of(content)


def test_lone_surrogates_are_replaced_in_answers_and_requests(service):
    lone = '{"choices": [{"message": {"content": "a \\ud83d b"}, "finish_reason": "\\ud83d"}]}'
    assert completion_of(lone.encode())[:2] == ("a \ufffd b", "\ufffd")
    service.return_value = httpx.Response(200, json=completion("hi"))
    ask(content="he\ud83dllo")
    ask(content=[{"type": "text", "text": "\ude00!"}])
    sent = [json.loads(call.request.content)["messages"][0]["content"] for call in service.calls]
    assert sent == ["he\ufffdllo", [{"type": "text", "text": "\ufffd!"}]]
    assert without_surrogates("\ud83d\ude00 é") == "\U0001f600 é"
