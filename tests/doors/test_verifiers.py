"""verifiers' door against the real package: `vf-eval`, limits, failures."""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import dialgym
from dialgym.testing.agreement import by_chat
from tests.support.chat_server import chat_server
from tests.support.commands import succeed

pytest.importorskip("verifiers.v1", reason="needs the extra `verifiers`")
import verifiers.v1 as vf
from verifiers.v1.utils.loaders import load_environment, resolve_env_config

from tests.doors.verifiers_player import PACKAGE, record_of_trace, rollout, rule_of

ROOT = Path(__file__).parents[2]
WORDLE = "Wordle-20-v0"
GUESSES = ("quiet", "crisp", "level", "habit", "usage", "power")


def guess(body):
    """A model that guesses its words in order."""
    return GUESSES[sum(message["role"] == "assistant" for message in body["messages"])]


def played_by(texts, seed=0, env_id=WORDLE, player=None, **settings):
    """The trace of a seed."""
    with chat_server(rule_of(texts)) as server:
        episode = asyncio.run(rollout(env_id, settings, seed, server.url, player))
    (trace,) = episode.traces
    return trace


def test_the_command_of_verifiers_plays_an_exported_package(tmp_path):
    folder = tmp_path / "wordle"
    printed = succeed("export", "verifiers", WORDLE, str(folder), "-s", "guesses=answers")
    assert "dialgym_wordle_20_v0.py, pyproject.toml" in printed
    assert 'name = "dialgym-wordle-20-v0"' in (folder / "pyproject.toml").read_text()
    path = os.pathsep.join([str(folder), str(ROOT), os.environ.get("PYTHONPATH", "")])
    command = [str(Path(sys.executable).with_name("vf-eval")), "dialgym-wordle-20-v0"]
    with chat_server(guess) as server:
        command += ["-n", "4", "-r", "2", "--client.base-url", server.url, "--no-push"]
        env = {**os.environ, "PYTHONPATH": path}
        result = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
    (file,) = tmp_path.rglob("traces.jsonl")
    traces = [json.loads(line)["traces"][0] for line in file.read_text().splitlines()]
    assert sorted(trace["task"]["data"]["seed"] for trace in traces) == [0, 0, 1, 1, 2, 2, 3, 3]
    for trace in traces:
        record = expected(trace["task"]["data"]["seed"])
        assert record_of_trace(trace) == record
        assert trace["rewards"]["return"]["score"] == sum(record.rewards)
        assert trace["metrics"]["reward_wrong guess"] == sum(record.rewards)
        assert trace["agent"]["name"] == "player"


def expected(seed):
    """The record of a chat in which the words are guessed in order."""
    chat = dialgym.Chat(WORDLE, guesses="answers")
    chat.reset(seed)
    turns = next(n for n, word in enumerate(GUESSES, 1) if chat.step(word).over)
    return by_chat(WORDLE, {"guesses": "answers"}, seed, GUESSES[:turns])


def test_replies_that_are_blank_are_heard_as_nothing():
    texts = ["", "  ", *GUESSES[:4]]
    record = record_of_trace(played_by(texts, seed=3).model_dump())
    assert record == by_chat(WORDLE, {}, 3, texts)


def test_a_limit_leaves_what_was_earned():
    trace = played_by(GUESSES, seed=0, player={"max_turns": 2})
    whole = by_chat(WORDLE, {}, 0, GUESSES[:2])
    assert trace.info["turn_rewards"] == list(whole.rewards)
    assert trace.rewards["return"].score == sum(whole.rewards) < 0
    assert trace.metrics["success"] == 0
    assert (trace.info["terminated"], trace.info["truncated"]) == (False, False)
    assert trace.stop_condition == "max_turns"


def test_a_model_that_fails_is_an_error_of_its_rollout():
    with chat_server(lambda body: None) as server:
        address = server.url.replace("/v1", "/nothing")
        episode = asyncio.run(rollout(WORDLE, {}, 0, address))
    (trace,) = episode.traces
    assert not trace.ok
    assert trace.errors
    assert (trace.info["turn_rewards"], trace.rewards["return"].score) == ([], 0)


def test_tasks_are_seeds_and_the_player_has_no_shell():
    played_by(GUESSES, seed=0)
    taskset = {"id": PACKAGE, "seed": 5, "count": 3}
    env = load_environment(resolve_env_config({"taskset": taskset}))
    tasks = list(env.taskset)
    assert [task.data.seed for task in tasks] == [5, 6, 7]
    chat = dialgym.Chat(WORDLE)
    brief, begin = chat.reset(5)
    assert tasks[0].data.system_prompt == brief["content"]
    assert tasks[0].data.prompt_text == begin["content"]
    (harness,) = env._harnesses.values()
    assert not harness.EXECUTES_CODE
    assert harness.config.id == PACKAGE
    assert isinstance(env.config.player.runtime, vf.SubprocessConfig)
