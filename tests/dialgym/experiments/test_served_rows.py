"""Rows of language models behind a service: who answered is told, and a tape plays them again."""

import json
import re

import pytest

pytest.importorskip("torch")  # rows say its version
pytest.importorskip("httpx", reason="the extra lm")
from dialgym.experiments.protocol import score_policy
from dialgym.experiments.row_checks import row_problems
from dialgym.experiments.row_files import read_row
from tests.support.chat_server import chat_server
from tests.support.commands import fail, succeed
from tests.support.tiny_panel import TINY, install

(PLACE,) = TINY.environments


@pytest.fixture(autouse=True)
def tiny(monkeypatch):
    return install(monkeypatch)


def guesses(body):
    """A word of the brief, by the length of the chat."""
    words = re.findall(r"\b[a-z]{5}\b", body["messages"][0]["content"].partition("one of")[2])
    return words[len(body["messages"]) % len(words)]


def test_a_row_tells_who_answered_and_is_played_again_from_its_tape(tmp_path):
    rows, tape = str(tmp_path / "rows"), str(tmp_path / "tape")
    with chat_server(guesses) as server:
        given = ("-p", f"base_url={server.url}", "-p", "temperature=0.5", "-p", f"record={tape}")
        succeed("leaderboard", "add", TINY.name, "openai:org/stub", "--out", rows, *given)
        asked = len(server.bodies)
    (file,) = (tmp_path / "rows").rglob("*-seed0.json")
    row = read_row(file)
    assert list(row_problems(row.values)) == []
    assert row.values["policy"] == "openai:org/stub"
    assert row.values["usage"]["requests"] == asked
    settings = row.values["settings"]
    assert (settings["host"], settings["request"]["temperature"]) == ("127.0.0.1", 0.5)
    assert row.name == f"org-stub-127.0.0.1-{settings['sampling']}"
    assert row.name in succeed("leaderboard", "show", TINY.name, "--results", rows)
    replayed = ("leaderboard", "check", str(file), "--replay")
    assert "played again alike" in succeed(*replayed, "--model", tape)
    assert "Give the tape" in fail(*replayed)


def test_another_sampling_is_another_policy(tmp_path):
    with chat_server(guesses) as server:
        given = {"name": "openai:stub", "base_url": server.url}
        score_policy(TINY, PLACE, given, "mine", 0, tmp_path)
        with pytest.raises(ValueError, match="another policy"):
            score_policy(TINY, PLACE, {**given, "temperature": 0}, "mine", 0, tmp_path)


def test_settings_are_of_served_models_alone(tmp_path):
    words = ("leaderboard", "add", TINY.name, "random", "--out", str(tmp_path))
    assert "-p is for openai:MODEL; got depth" in fail(*words, "-p", "depth=3")


def test_a_key_is_in_no_row(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    with chat_server(guesses) as server:
        given = {"name": "openai:stub", "base_url": server.url}
        file = score_policy(TINY, PLACE, given, "mine", 0, tmp_path)
    assert "sk-very-secret" not in json.dumps(json.loads(file.read_text("utf-8")))
