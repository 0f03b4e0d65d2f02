"""OpenEnv's door against the real package, over WebSockets."""

import asyncio
import json
import os
import re
import subprocess
import sys
import threading
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pytest
from typer.testing import CliRunner

import dialgym
from dialgym.testing.agreement import by_chat
from tests.support.commands import succeed

pytest.importorskip("openenv", reason="needs the extra `openenv`")
from openenv.cli.__main__ import app as openenv_command
from openenv.core import GenericEnvClient

from dialgym.bridges import openenv
from tests.support.app_server import app_server
from tests.support.openenv_client import play_openenv

WORDLE, QUESTIONS = "Wordle-20-v0", "TwentyQuestions-16-v0"
GUESSES = ["quiet", "Crisp ", "", "no such word at all", "level"]
SESSIONS = 64


@pytest.fixture(scope="module")
def url():
    with app_server(openenv.app(WORDLE)) as address:
        yield address


def played(url, texts=GUESSES, **reset):
    return asyncio.run(play_openenv(url, texts, **reset))


def expected(seed, texts=GUESSES, env_id=WORDLE, **settings):
    """The record of a chat, of as many texts as it has turns, but for what OpenEnv lacks."""
    chat = dialgym.Chat(env_id, **settings)
    chat.reset(seed)
    turns = next((n for n, text in enumerate(texts, 1) if chat.step(text).over), len(texts))
    return replace(by_chat(env_id, settings, seed, texts[:turns]), said=None)


@pytest.mark.parametrize("seed", range(3))
def test_a_seed_gives_the_same_dialogue_as_a_chat(url, seed):
    assert played(url, seed=seed) == expected(seed) == played(url, seed=seed)


def test_64_sessions_at_once_do_not_mix(url):
    async def all_of_them():
        return await asyncio.gather(
            *(play_openenv(url, GUESSES, seed=seed) for seed in range(SESSIONS))
        )

    records = [expected(seed) for seed in range(SESSIONS)]
    assert asyncio.run(all_of_them()) == records
    assert len({str(record) for record in records}) > 5


def test_the_learner_may_be_the_user():
    texts = ["no", "yes", "i can't tell"]
    with app_server(openenv.app(QUESTIONS, learner="user")) as address:
        assert played(address, texts, seed=4) == expected(4, texts, QUESTIONS, learner="user")


class Slow:
    """An answerer that answers "is it alive?" only when it may."""

    def __init__(self, task):
        self.answerer = task.speaker_named("user", "answerer")
        self.asked, self.may_answer = threading.Event(), threading.Event()

    def reply(self, task, state, rng):
        if task.transcript(state, "user")[-1].text.startswith("is it alive"):
            self.asked.set()
            self.may_answer.wait()
        return self.answerer.reply(task, state, rng)


def test_a_slow_session_delays_nobody():
    slow = Slow(dialgym.Chat(QUESTIONS).task)
    app = openenv.app(QUESTIONS, simulator=slow)

    async def all_of_them(address):
        first = asyncio.create_task(play_openenv(address, ["is it alive?"], seed=0))
        await asyncio.to_thread(slow.asked.wait)
        others = [play_openenv(address, ["is it a cat?"], seed=seed) for seed in range(1, 9)]
        try:
            done = await asyncio.gather(*others)
            assert not first.done()
        finally:
            slow.may_answer.set()
        return [await first, *done]

    with app_server(app) as address:
        records = asyncio.run(all_of_them(address))
    questions = ["is it alive?"] + 8 * ["is it a cat?"]
    assert records == [expected(i, [text], QUESTIONS) for i, text in enumerate(questions)]


def test_one_session_too_many_is_refused_and_disturbs_nobody(url):
    async def sessions():
        clients = [GenericEnvClient(base_url=url) for _ in range(SESSIONS)]
        for client in clients:
            await client.reset(seed=0)
        with pytest.raises(RuntimeError, match=f"(?i)capacity.*{SESSIONS}"):
            async with GenericEnvClient(base_url=url) as further:
                await further.reset(seed=0)
        for client in clients:
            assert (await client.step({"text": "quiet"})).reward == -1
            await client.close()

    asyncio.run(sessions())


def test_dialogues_are_listed_by_their_seeds_and_begun():
    session = openenv.environment(WORDLE)()
    assert session.list_splits() == ["seeds"]
    assert session.num_tasks("seeds") == len(session.list_tasks("seeds")) == 1000
    assert [task["seed"] for task in session.get_task_range("seeds", 3, 5)] == [3, 4]
    chat = dialgym.Chat(WORDLE)
    assert session.reset(split="seeds", index=7).messages == chat.reset(7)
    assert session.chat.step("quiet").text == chat.step("quiet").text


@pytest.mark.parametrize("split", ["train", "test"])
def test_goals_that_are_frozen_are_listed_whichever_are_played(split):
    session = openenv.environment("MultiWOZ-v0", language="words")()
    assert session.list_splits() == ["train", "test"]
    assert len(session.list_tasks(split)) == 1000
    frozen = dialgym.Chat("MultiWOZ-v0", language="words", goals=split)
    for index in (0, 999):
        begun = session.reset(split=split, index=index).messages
        assert session.get_task(split, index)["index"] == index
        assert begun == frozen.reset(index, {"number": index})
        goals = [each.env.dialogue.state.dialogue.goal for each in (session.chat, frozen)]
        assert goals[0] == goals[1]


@pytest.mark.parametrize(
    ("split", "index"),
    [("seeds", -1), ("seeds", 1000), ("seeds", "3"), ("seed", 0), ("seeds", 1.0)],
)
def test_what_is_not_listed_cannot_be_begun(split, index):
    with pytest.raises(IndexError, match="expected"):
        openenv.environment(WORDLE)().get_task(split, index)


REFUSED = [
    ({"seed": -1}, "(?i)seed"),
    ({"seed": "one"}, "(?i)seed"),
    ({"split": "none", "index": 0}, "expected one of seeds; got 'none'"),
    ({"split": "seeds", "index": 1000}, "expected a whole number, 0 to 999; got 1000"),
    ({"split": "seeds"}, "'split' and 'index' together and without 'seed' and 'options'.*'split'"),
    ({"index": 3}, "'split' and 'index' together.*got 'index'"),
    ({"split": "seeds", "index": 3, "seed": 3}, "got 'index', 'seed', 'split'"),
    ({"split": "seeds", "index": 3, "options": {}}, "got 'index', 'options', 'split'"),
    ({"options": {"nothing": 1}}, "unknown option 'nothing'"),
    ({"options": 5}, "expected a mapping"),
    ({"sed": 1}, "unexpected keyword argument 'sed'. Did you mean 'seed'"),
]


@pytest.mark.parametrize(("reset", "match"), REFUSED)
def test_a_refused_reset_is_one_error_and_the_session_lives_on(url, reset, match):
    async def session():
        async with GenericEnvClient(base_url=url) as client:
            with pytest.raises(RuntimeError, match=match):
                await client.reset(**reset)
            begun = await client.reset(seed=0)
            return (await client.step({"text": "quiet"})).observation["text"], begun.observation

    text, begun = asyncio.run(session())
    chat = dialgym.Chat(WORDLE)
    assert (begun["messages"], text) == (chat.reset(0), chat.step("quiet").text)


def test_a_turn_out_of_order_or_of_another_form_is_one_error_and_the_session_lives_on(url):
    async def session():
        async with GenericEnvClient(base_url=url) as client:
            with pytest.raises(RuntimeError, match=r"reset\(\)"):
                await client.step({"text": "quiet"})
            await client.reset(seed=0)
            for action in ({"text": 5}, {"text": None}, {}, {"text": "quiet", "more": 1}):
                with pytest.raises(RuntimeError, match="Invalid"):
                    await client.step(action)
            long = await client.step({"text": "x" * 10_000_000})
            assert (long.reward, long.done) == (-1, False)
            for _ in range(5):
                last = await client.step({"text": "level"})
            assert last.done
            with pytest.raises(RuntimeError, match=r"reset\(\)"):
                await client.step({"text": "quiet"})
            return (await client.reset(seed=0)).observation["messages"]

    assert asyncio.run(session()) == dialgym.Chat(WORDLE).reset(0)


def ran(*command):
    """Output of a command in its own process."""
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def test_the_command_serves_what_the_package_validates():
    serve = [sys.executable, "-m", "dialgym", "serve", "openenv", WORDLE, "--port", "0"]
    with subprocess.Popen(
        [*serve, "-s", "guesses=answers"], stdout=subprocess.PIPE, text=True
    ) as served:
        try:
            address = re.search(r"http://[\d.:]+", served.stdout.readline())[0]
            check = ["validate", "--url", address, "--level", "runtime", "--json"]
            report = json.loads(ran(sys.executable, "-m", "openenv.cli", *check))
            assert played(address, seed=1) == expected(1, guesses="answers")
        finally:
            served.terminate()
    assert report["passed"]
    assert all(criterion["passed"] for criterion in report["criteria"])


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path / "written")
    yield tmp_path / "written"
    for name in ("server.app", "server"):
        sys.modules.pop(name, None)


def test_a_folder_serves_what_it_was_written_for(folder):
    form = ["-s", "language=english", "-s", "learner=user"]
    succeed("export", "openenv", "SlotFilling-v0", str(folder), *form)
    check = ["validate", str(folder), "--level", "static", "--skip-build"]
    report = CliRunner().invoke(openenv_command, check)
    assert "PASS  static.manifest" in report.output
    chat = expected(2, ["hello"], "SlotFilling-v0", language="english", learner="user")
    with app_server(import_module("server.app").app) as address:
        assert played(address, ["hello"], seed=2) == chat


def test_the_command_of_the_dockerfile_serves_the_folder(tmp_path):
    """As in the container, but for the port; what it installs is the extra of this version."""
    succeed("export", "openenv", WORDLE, str(tmp_path / "written"))
    steps = (tmp_path / "written" / "Dockerfile").read_text("utf-8").splitlines()
    assert f'RUN pip install --no-cache-dir "dialgym[openenv]=={dialgym.__version__}"' in steps
    program, *arguments = json.loads(steps[-1].removeprefix("CMD "))
    command = [str(Path(sys.executable).with_name(program)), *arguments]
    command[command.index("--port") + 1] = "0"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([".", *sys.path])}
    with subprocess.Popen(
        command, cwd=tmp_path / "written", env=env, stderr=subprocess.PIPE, text=True
    ) as served:
        try:
            told = next(line for line in served.stderr if "running on" in line)
            port = re.search(r":(\d+) ", told)[1]
            assert played(f"http://127.0.0.1:{port}", seed=1) == expected(1)
        finally:
            served.terminate()
