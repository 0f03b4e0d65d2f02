"""Rows of language models behind a service: who answered is told, and a tape plays them again."""

import asyncio
import json
import re

import pytest

pytest.importorskip("torch")  # rows say its version
pytest.importorskip("httpx", reason="the extra lm")
from dialgym.experiments.protocol import score_policy
from dialgym.experiments.row import check_name, name_with_settings
from dialgym.experiments.row_checks import row_problems
from dialgym.experiments.row_files import read_row
from dialgym.io.chat_client import ChatClient
from dialgym.io.model_settings import ModelSettings
from dialgym.io.tape import Tape
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
    assert row.values["tape"] == Tape(tape, "replay").digest
    settings = row.values["settings"]
    assert (settings["host"], settings["request"]["temperature"]) == ("127.0.0.1", 0.5)
    assert row.name == f"org-stub-127.0.0.1-{settings['sampling']}"
    assert row.name in succeed("leaderboard", "show", TINY.name, "--results", rows)
    replayed = ("leaderboard", "check", str(file), "--replay")
    assert "played again alike" in succeed(*replayed, "--model", tape)
    assert "Give the tape" in fail(*replayed)
    with chat_server(guesses) as server:
        client = ChatClient(ModelSettings("org/stub", server.url), Tape(tape))
        asyncio.run(client.complete([{"role": "user", "content": "one of heard"}]))
    assert "tape: expected" in fail(*replayed, "--model", tape)


def test_another_sampling_is_another_policy(tmp_path):
    with chat_server(guesses) as server:
        given = {"name": "openai:stub", "base_url": server.url}
        score_policy(TINY, PLACE, given, "mine", 0, tmp_path)
        with pytest.raises(ValueError, match="another policy"):
            score_policy(TINY, PLACE, {**given, "temperature": 0}, "mine", 0, tmp_path)


def test_settings_are_of_policies_that_have_some(tmp_path):
    add = ("leaderboard", "add", TINY.name)
    out = ("--name", "mine", "--out", str(tmp_path))
    assert "unknown setting 'depth' in the policy 'random'. Known: none." in fail(
        *add, "random", *out, "-p", "depth=3"
    )
    assert "Did you mean 'smart'?" in fail(*add, "random-mixture", *out, "-p", "smrt=1")
    assert "Give the policy its settings yourself" in fail(
        *add, "dialgym.tasks.wordle.policies:RandomWord", *out, "-p", "depth=3"
    )
    assert not [*tmp_path.rglob("*.json")]


def test_rows_of_one_policy_with_other_settings_stand_side_by_side(tmp_path):
    add = ("leaderboard", "add", TINY.name, "random-mixture", "--out", str(tmp_path))
    for smart in ("0", "1"):
        succeed(*add, "-p", f"smart={smart}")
    files = sorted(tmp_path.rglob("*-seed0.json"))
    rows = [read_row(file) for file in files]
    assert [row.name for row in rows] == ["random-mixture-smart0", "random-mixture-smart1"]
    assert [row.values["policy_kwargs"] for row in rows] == [{"smart": 0}, {"smart": 1}]
    worse, better = (row.values["statistics"]["scripted"]["success"] for row in rows)
    assert better > worse
    assert "played again alike" in succeed("leaderboard", "check", str(tmp_path), "--replay")
    text = fail(*add, "--name", "random-mixture-smart0", "-p", "smart=1")
    assert "is the row of another policy (random-mixture, scripted, with {'smart': 0})" in text
    assert "is that of a scripted policy" in fail(*add, "--name", "random-mixture", "-p", "smart=1")
    row = {**rows[0].values, "policy_kwargs": 3}
    assert list(row_problems(row)) == ["policy_kwargs: expected an object, got 3"]


@pytest.mark.parametrize(("settings", "name"), [
    ({"smart": 0.5}, "a-smart0.5"), ({"b": 1, "a": "x/y z"}, "a-ax-y-z-b1"),
])  # fmt: skip
def test_names_tell_settings(settings, name):
    assert name_with_settings("a", settings) == name
    long = name_with_settings("a" * 60, settings)
    assert check_name(long, "name") != name_with_settings("a" * 60, {"smart": 0.6})


def test_a_key_is_in_no_row(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    with chat_server(guesses) as server:
        given = {"name": "openai:stub", "base_url": server.url}
        file = score_policy(TINY, PLACE, given, "mine", 0, tmp_path)
    assert "sk-very-secret" not in json.dumps(json.loads(file.read_text("utf-8")))
