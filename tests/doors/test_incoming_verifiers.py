"""Doors in from verifiers' packages, against the real package."""

import gc
import os
import pickle
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from typer.testing import CliRunner

pytest.importorskip("verifiers.v1", reason="needs the extra `verifiers`")

import dialgym
from dialgym.bridges import verifiers
from dialgym.bridges.foreign import OPEN
from dialgym.bridges.verifiers_client import VerifiersTask
from dialgym.cli.app import app
from dialgym.testing import CheckSettings, check_environment
from dialgym.testing.agreement import FAMILIES, case_of
from tests.support import verifiers_words as words
from tests.support.commands import succeed
from tests.support.faulty_environments import TURNS, GuessWord

ROOT = Path(__file__).parents[2]


def environment_of(name):
    return VerifiersTask(name.removeprefix("verifiers:")).environment


@pytest.fixture
def game():
    with words.guess_word_package() as name:
        yield name


def exported(env_id, settings):
    """What `dialgym export verifiers` writes, as a package of this process."""
    found = verifiers.classes(env_id, **settings)
    return words.package(found.taskset, found.env, found.harness)


def in_text(messages):
    return "\n\n".join(f"{r}: {text}" if r == "assistant" else text for r, text in messages)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_round_trip_gives_the_dialogues_of_the_task(family):
    """Out by the export and in by the name: texts, rewards and the end are those of the rules."""
    for seed in (0, 3):
        env_id, settings, texts, record = case_of(family, seed)
        with exported(env_id, settings) as name:
            session = environment_of(name).open()
            heard = [session.reset(seed)]
            heard += [session.step(text) for text in texts]
            session.close()
        told = [text for place, text in enumerate(record.messages) if place - 1 in record.said]
        assert heard[0].text == in_text(record.opening)
        assert [each.text for each in heard[1:]] == [*map(in_text, zip(told)), record.closing]
        assert [each.reward for each in heard[1:]] == list(record.rewards)
        assert heard[-1][2:4] == (record.terminated, record.truncated)
        assert heard[-1].info["success"] == record.success
        assert not any(each.over for each in heard[:-1])


def test_an_exported_package_is_installed_and_played(tmp_path):
    """By pip, and checked by the command line in a process of its own."""
    succeed("export", "verifiers", "Wordle-20-v0", str(tmp_path / "wordle"))
    site = tmp_path / "site"
    offline = ["--quiet", "--no-deps", "--no-index", "--no-build-isolation"]
    install = [sys.executable, "-m", "pip", "install", *offline, "--target", str(site)]
    subprocess.run([*install, str(tmp_path / "wordle")], check=True, capture_output=True)
    assert (site / "dialgym_wordle_20_v0.py").exists()
    path = os.pathsep.join([str(site), str(ROOT), os.environ.get("PYTHONPATH", "")])
    name = "verifiers:dialgym-wordle-20-v0"
    run = subprocess.run(
        [sys.executable, "-m", "dialgym", "check", name, "-n", "3"],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout.count(f"{name}: ") == 8


def test_a_foreign_package_gives_what_its_game_gives(game):
    there = dialgym.make(game)
    for seed in range(8):
        plain = GuessWord()
        text, _ = plain.reset(seed=seed)
        seen, _ = there.reset(options={"seed": seed})
        heard, lines = text, [f"user: {text}"]
        assert seen == f"{lines[0]}\n"
        for said in ("apple", "queen", "zebra"):
            text, reward, over, _, info = plain.step(said)
            seen, earned, ended, cut, told = there.step(said)
            lines += [f"system: {said}", f"user: {'' if over else text.removeprefix(heard)}"]
            assert seen.rstrip("\n") == "\n".join(lines).rstrip("\n")
            assert earned == pytest.approx(reward)
            assert (ended, cut) == (over, False)
            heard = text
            if over:
                assert told["is_success"] == info["is_success"]
                break
        plain.close()
    there.close()


def test_tools_take_the_name(game, tmp_path):
    result = dialgym.evaluate("quoted-moves", game, episodes=3, seeds=[0])
    assert result.overall.lengths.max() <= TURNS
    stored = dialgym.collect(game, "quoted-moves", 2, path=tmp_path / "data")
    assert len(stored) == 2
    played = CliRunner().invoke(app, ["play", game, "--policy", "quoted-moves", "--seed", "1"])
    assert played.exit_code == 0, played.output
    assert "Guess a word" in played.output
    chat = dialgym.Chat(game)
    assert "letter" in chat.reset(seed=0)[-1]["content"]


def test_questions_of_one_turn():
    with words.package(words.Sums) as name:
        env = dialgym.make(name)
        for text, reward in (("6", 1.0), ("7", 0.0)):
            seen, _ = env.reset(options={"seed": 3 + words.TASKS})
            assert seen == "user: Answer with a number.\n\n3 + 3 = ?\n"
            _, earned, ended, cut, info = env.step(text)
            assert (earned, ended, cut) == (reward, True, False)
            assert info["is_success"] == (reward > 0)
        report = check_environment(
            environment_of(name), CheckSettings(episodes=6, texts=("4", "5"))
        )
    assert not report.faults
    secret = next(r for r in report.results if r.check == "no observation tells the secret")
    assert secret.evidence == "not told: info['answer']"


def test_a_dialogue_goes_on_from_a_copy_and_in_another_process(game):
    env = dialgym.make(game).unwrapped
    env.reset(options={"seed": 5})
    env.step("apple")
    saved = env.clone_state()
    first = env.step("zebra")[:4]
    env.restore_state(saved)
    assert env.step("zebra")[:4] == first
    assert pickle.loads(pickle.dumps(env.task)).name == game
    if (child := os.fork()) == 0:
        env.restore_state(saved)
        os._exit(0 if env.step("zebra")[:4] == first else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_sessions_that_are_closed_left_or_forgotten_leave_nothing():
    def served():
        return [thread for thread in threading.enumerate() if thread.name == name]

    with words.guess_word_package() as name:
        before = len(GuessWord.open_games)
        environment = environment_of(name)
        sessions = [environment.open() for _ in range(5)]
        for seed, session in enumerate(sessions):
            session.reset(seed)
            session.step("apple")
        assert len(GuessWord.open_games) == before + 5
        sessions[0].reset(7)  # leaves an episode
        assert len(GuessWord.open_games) == before + 5
        for session in sessions[:3]:
            session.close()
            session.close()
        assert len(GuessWord.open_games) == before + 2
        (thread,) = served()
        del session, sessions, environment
        gc.collect()
        thread.join()
        assert len(GuessWord.open_games) == before


def test_no_more_are_open_than_a_task_holds(game):
    before = len(GuessWord.open_games)
    env = dialgym.make(game).unwrapped
    for seed in range(OPEN + 5):
        env.reset(options={"seed": seed})
    assert len(GuessWord.open_games) - before <= OPEN


@pytest.mark.parametrize(
    ("classes", "message"),
    [
        ([words.NoTasks], r"verifiers:package_\d+ has no tasks"),
        ([words.Sums, words.TwoAgents], "expected an environment of one agent.*solver, judge"),
        ([words.TwoAgents], r"verifiers:package_\d+ cannot be played: .*exports no Taskset"),
    ],
)
def test_packages_that_cannot_be_played(classes, message):
    with words.package(*classes) as name, pytest.raises(ValueError, match=message):
        dialgym.make(name)


def test_no_package_and_an_error_in_one():
    with pytest.raises(ImportError, match="no_such_package"):
        dialgym.make("verifiers:no-such-package")
    with words.package(words.Words, words.Falls) as name:
        env = dialgym.make(name)
        env.reset(options={"seed": 2})
        with pytest.raises(RuntimeError, match=r"package_\d+, task 2 has failed: .*no more words"):
            env.step("apple")


@pytest.mark.parametrize(
    ("taskset", "message"),
    [
        (words.Boxed, r"package_\d+, task 0 has failed: .*BoxedTask needs a container"),
        (words.Pictured, r"verifiers: expected messages of text; got image_url"),
    ],
)
def test_tasks_that_cannot_be_played(taskset, message):
    with words.package(taskset) as name:
        env = dialgym.make(name)
        with pytest.raises((RuntimeError, ValueError), match=message):
            env.reset(options={"seed": 0})
