"""The client of language models: patience, refusals, budgets, and nothing said of the key."""

import asyncio
import json
import pickle
import time
from email.utils import formatdate

import pytest

from dialgym.io.chat_client import ChatClient, NoCompletionError
from dialgym.io.chat_service import CompletionRefusedError, HttpService, completion_of, wait_of
from dialgym.io.model_settings import BudgetSpentError, ModelSettings, Usage, usage_text
from dialgym.io.tape import Tape, TapeMissError
from tests.support.chat_server import chat_server, completion

httpx = pytest.importorskip("httpx", reason="the extra lm")
respx = pytest.importorskip("respx", reason="the extra dev")

URL = "http://model.test/v1"
CHAT = [{"role": "user", "content": "hello"}]
KEY = "sk-very-secret"


class Client(ChatClient):
    """A client that sleeps in no time, and notes how long it would have."""

    def __init__(self, tape=None, **settings):
        self.slept = []
        made = ModelSettings("m", **{"base_url": URL, **settings})
        super().__init__(made, tape, sleep=self._note)

    async def _note(self, seconds):
        self.slept.append(seconds)

    def ask(self, **where):
        async def once():
            try:
                return await self.complete(CHAT, **where)
            finally:
                await self.close()

        return asyncio.run(once())


@pytest.fixture
def service():
    with respx.mock(base_url=URL, assert_all_called=False) as router:
        yield router.post("/chat/completions")


def ok(text="hi", **choice):
    return httpx.Response(200, json=completion(text, **choice))


def test_an_answer_and_what_was_asked(service, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    service.return_value = ok()
    client = Client(temperature=0.5, max_tokens=7, extra={"top_k": 3})
    assert client.ask(drawn=2**31 + 5).text == "hi"
    body = json.loads(service.calls[0].request.content)
    expected = {"model": "m", "messages": CHAT, "temperature": 0.5, "max_tokens": 7, "top_k": 3}
    assert body == {**expected, "seed": 5}
    assert service.calls[0].request.headers["authorization"] == f"Bearer {KEY}"
    assert client.usage == Usage(requests=1, prompt_tokens=10, answer_tokens=2)


def test_without_a_key_none_is_sent(service, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    service.return_value = ok()
    Client(seeded=False).ask()
    request = service.calls[0].request
    assert "authorization" not in request.headers
    assert "seed" not in json.loads(request.content)


TORN = httpx.Response(200, content=b'{"choices": [{"mess')
FAULTS = [
    *[httpx.Response(status) for status in (408, 409, 425, 429, 500, 502, 503, 529)],
    TORN,
    httpx.Response(200, content=b""),
    httpx.Response(200, json={"choices": []}),
    httpx.Response(200, json={"error": "busy"}),
    httpx.ConnectError("refused"),
    httpx.RemoteProtocolError("hung up"),
]


@pytest.mark.parametrize("fault", FAULTS, ids=repr)
def test_a_fault_is_met_with_another_attempt(service, fault):
    service.side_effect = [fault, fault, ok()]
    client = Client(retries=2, backoff=0.5)
    assert client.ask().text == "hi"
    assert client.slept == [0.5, 1.0]
    assert (client.usage.requests, client.usage.retries) == (1, 2)


def test_after_the_last_attempt_one_error_tells_all(service):
    service.return_value = httpx.Response(503, text="overloaded")
    with pytest.raises(
        NoCompletionError, match=r"turn 4.*'m' at http://model.test/v1 in 3 att.*503"
    ):
        Client(retries=2).ask(turn=4)
    assert service.call_count == 3


def test_a_service_is_believed_how_long_to_wait(service):
    wait = httpx.Response(429, headers={"Retry-After": "7"})
    endless = httpx.Response(503, headers={"Retry-After": "86400"})
    service.side_effect = [wait, endless, ok()]
    client = Client()
    client.ask()
    assert client.slept == [7.0, 300.0]


def test_a_wait_is_seconds_or_a_date():
    assert wait_of("2.5") == 2.5
    assert wait_of("-3") == 0.0
    assert 3590 < wait_of(formatdate(time.time() + 3600, usegmt=True)) <= 3600
    assert wait_of("soon") is wait_of("") is wait_of(None) is None


@pytest.mark.parametrize(
    ("status", "hint"), [(400, "settings"), (401, "OPENAI_API_KEY"), (404, "name"), (301, "")]
)
def test_a_refusal_is_not_tried_again(service, status, hint, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    service.return_value = httpx.Response(status, text=f"no, {KEY} is wrong")
    client = Client()
    with pytest.raises(CompletionRefusedError, match=rf"status {status}.*{hint}") as caught:
        client.ask()
    assert service.call_count == 1
    assert KEY not in str(caught.value) + repr(client.settings) + repr(vars(client))


def test_a_stalled_service_is_left_in_time(service):
    calls = []

    async def stall(request):
        calls.append(request)
        if len(calls) == 1:
            await asyncio.Event().wait()
        return ok()

    service.side_effect = stall
    client = Client(timeout=0.05)
    assert client.ask().text == "hi"
    assert client.usage.retries == 1


def test_calls_of_tools_are_empty_answers(service):
    service.side_effect = [ok(None, finish_reason="tool_calls"), ok("x", finish_reason="length")]
    client = Client()
    assert client.ask().text == ""
    assert client.ask().text == "x"
    assert (client.usage.empty, client.usage.cut) == (1, 1)
    assert "1 empty, 1 cut" in usage_text(client.usage.counts())


def test_silence_is_asked_again_and_stands_at_the_last(service):
    service.side_effect = [ok(" "), ok(None), ok("well")]
    client = Client(retries=3)
    assert client.ask().text == "well"
    assert (client.usage.empty, client.usage.retries, client.usage.prompt_tokens) == (2, 2, 30)
    service.side_effect = [ok(""), ok("")]
    assert Client(retries=1).ask().text == ""


def test_an_answer_without_counts_counts_nothing():
    content = json.dumps({"choices": [{"message": {"content": "x"}}]}).encode()
    assert completion_of(content) == ("x", "", 0, 0)


def test_a_text_may_come_in_parts():
    parts = [{"type": "reasoning", "text": "no"}, *({"type": "text", "text": t} for t in "ab")]
    content = json.dumps({"choices": [{"message": {"content": parts}}]}).encode()
    assert completion_of(content).text == "ab"


@pytest.mark.parametrize(
    "budget",
    [{"requests": 2}, {"tokens": 24}, {"money": 20e-6, "prompt_price": 1.0, "answer_price": 0.5}],
)
def test_a_spent_budget_asks_no_more(service, budget):
    service.return_value = ok()
    client = Client(budget=budget)
    client.ask()
    client.ask()
    with pytest.raises(BudgetSpentError, match=next(iter(budget))):
        client.ask()
    assert service.call_count == 2


def test_no_budget_of_seconds_asks_nothing(service):
    with pytest.raises(BudgetSpentError, match="seconds"):
        Client(budget={"seconds": 0}).ask()
    assert service.call_count == 0


def test_a_recording_is_replayed_and_nobody_is_asked(service, tmp_path):
    replies = iter("abc")
    service.side_effect = lambda request: ok(next(replies))
    recording = Client(Tape(tmp_path / "tape"))
    said = [recording.ask(drawn=drawn).text for drawn in (1, 2, 1)]
    assert said == ["a", "b", "a"]
    assert service.call_count == 2
    replayed = Client(Tape(tmp_path / "tape", "replay"), budget={"requests": 0})
    assert [replayed.ask(drawn=drawn).text for drawn in (1, 2, 1)] == said
    with pytest.raises(TapeMissError, match="turn 1"):
        replayed.ask(drawn=1, turn=1)
    assert service.call_count == 2
    assert (replayed.usage.requests, replayed.usage.replayed) == (0, 3)


def test_no_key_is_on_the_tape(service, tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    service.return_value = ok()
    Client(Tape(tmp_path / "tape")).ask()
    assert KEY not in (tmp_path / "tape").read_text("utf-8")


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"model": " "}, "model"),
        ({"base_url": "127.0.0.1:8000"}, "base_url"),
        ({"base_url": "http://me:pass@host/v1"}, "password"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"retries": -1}, "retries"),
        ({"timeout": 0}, "timeout"),
        ({"temperature": float("nan")}, "temperature"),
        ({"budget": {"tokens": -1}}, "tokens"),
        ({"budget": {"dollars": 1}}, "Known"),
        ({"base_url": 8000}, "base_url of .* must be a text; got 8000"),
        ({"api_key_env": None}, "api_key_env of .* must be a text; got None"),
        ({"seeded": "maybe"}, "seeded of .* must be True or False; got 'maybe'"),
        ({"extra": 5}, "extra of .* expected a mapping"),
        ({"extra": ["top_k"]}, "extra of .* expected a mapping"),
        ({"extra": {"messages": []}}, "'messages' is no further field"),
        ({"extra": {"stream": True}}, "expected no stream"),
    ],
)
def test_settings_that_cannot_be(settings, told):
    with pytest.raises(ValueError, match=told) as caught:
        ModelSettings(**{"model": "m", **settings})
    assert "me:pass" not in str(caught.value)


def test_the_address_is_of_the_environment_where_none_is_given(monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", "http://here:1/v1/")
    assert ModelSettings("m").base_url == "http://here:1/v1"
    monkeypatch.delenv("OPENAI_BASE_URL")
    assert ModelSettings("m").base_url == "https://api.openai.com/v1"


def test_a_pickled_copy_begins_without_connections():
    service = HttpService(ModelSettings("m", base_url=URL))
    client = ChatClient(service.settings, service=service)
    service._idle, client.usage.requests = [object()], 3
    copy = pickle.loads(pickle.dumps(client))
    assert (copy._service._idle, copy.usage.requests) == ([], 0)
    assert copy.settings == client.settings


def test_a_real_server_is_asked_many_things_at_once():
    with chat_server(lambda body: body["messages"][-1]["content"].upper()) as server:

        async def ask():
            client = ChatClient(ModelSettings("m", base_url=server.url, concurrency=8))
            chats = [[{"role": "user", "content": f"word {i}"}] for i in range(32)]
            answers = await asyncio.gather(*map(client.complete, chats))
            await client.close()
            return [answer.text for answer in answers]

        assert asyncio.run(ask()) == [f"WORD {i}" for i in range(32)]
    assert server.most <= 8
