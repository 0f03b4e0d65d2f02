"""Language models behind a service at the command line: to talk to, and as the other party."""

import pytest

from tests.support.chat_server import chat_server
from tests.support.commands import fail, succeed

pytest.importorskip("httpx", reason="the extra lm")


def echoes(body):
    return f"<think>hm</think>you said {body['messages'][-1]['content']}"


def test_one_talks_to_a_model():
    with chat_server(echoes) as server:
        given = ("-p", f"base_url={server.url}", "--temperature", "0.5", "--top-k", "3")
        text = succeed("chat", "--model", "openai:stub", *given, keys="hello\nagain\n/quit\n")
    assert "you said hello" in text
    assert "you said again" in text
    assert "think" not in text
    assert "2 requests, 20 + 4 tokens" in text
    roles = [message["role"] for message in server.bodies[1]["messages"]]
    assert roles == ["user", "assistant", "user"]
    assert [(body["temperature"], body["top_k"]) for body in server.bodies] == [(0.5, 3)] * 2


def test_a_seed_and_a_tape_bring_the_same_talk(tmp_path):
    tape = str(tmp_path / "tape")
    with chat_server(echoes) as server:
        given = ("chat", "-m", "openai:stub", "--seed", "3", "-p", f"base_url={server.url}")
        first = succeed(*given, "-p", f"record={tape}", keys="hello\n")
    again = succeed(*given, "-p", f"replay={tape}", keys="hello\n")
    assert again.splitlines()[0] == first.splitlines()[0]
    assert "1 replayed" in again


def test_a_model_plays_against_a_person_and_a_policy():
    with chat_server(lambda body: "yes") as server:
        url = f"base_url={server.url}"
        against = ("play", "TwentyQuestions-8-v0", "--against", "openai:stub", "--seed", "0")
        text = succeed(*against, "-p", url, "--trust", keys="is it alive\n/quit\n")
        assert "yes" in text
        spoken = len(server.bodies)
        succeed("play", "Wordle-20-v0", "--policy", "openai:stub", "-p", url, "--seed", "0")
    assert len(server.bodies) > spoken


@pytest.mark.parametrize("setting", ["persona=a pirate", "done_marker=DONE", "on_miss=rule"])
def test_settings_that_a_chat_does_not_heed_are_refused(setting):
    message = fail("chat", "-m", "openai:stub", "-p", setting)
    assert f"{setting.partition('=')[0]!r} is of a party of a task" in message


def test_what_is_wrong_is_one_line():
    dead = ("-p", "base_url=http://127.0.0.1:9/v1", "-p", "retries=0")
    error = fail("evaluate", "openai:stub", "Wordle-20-v0", "-n", "1", "--seeds", "0", *dead)
    assert "http://127.0.0.1:9/v1" in error
    assert "retries" in fail("evaluate", "openai:stub", "Wordle-20-v0", "-p", "retrys=0")
    assert "OPENAI_API_KEY" not in error
