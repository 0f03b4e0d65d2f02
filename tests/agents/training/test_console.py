"""Messages of a run, what it refuses to overwrite, and its end by Ctrl-C."""

import importlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import gymnasium as gym
import pytest
import yaml

pytest.importorskip("stable_baselines3")
import agents
import dialgym
from agents.storage.archive import model_archive
from agents.training.callbacks import LearningCurve, LossCurve
from agents.training.config import RECORD, TrainConfig
from dialgym import registry, trust
from dialgym.experiments.panel import panel_named
from dialgym.experiments.protocol import score_policy
from dialgym.language import CharTokenizer
from tests.support.by_day import by_day
from tests.support.commands import fail, run, succeed
from tests.support.own_task import GUESS
from tests.support.players import SMALL
from tests.support.resuming import assert_same_run
from tests.support.waiting import wait_until

TINY = {
    "n_steps": 36,
    "batch_size": 288,
    "n_epochs": 1,
    "policy_kwargs": {"n_layer": 1, "n_embd": 16},
}
PARAMETERS = ("-p", "n_steps=36", "-p", "batch_size=288", "-p", "n_epochs=1",
              "-p", "policy_kwargs={n_layer: 1, n_embd: 16}")  # fmt: skip
COMMAND = ("train", "ppo", SMALL, "--timesteps", "300", "--n-envs", "8", "--device", "cpu")


def train(folder, **more):
    arguments = {
        "total_timesteps": 200,
        "n_envs": 8,
        "hyperparameters": TINY,
        "progress_bar": False,
    }
    return agents.train(SMALL, "ppo", log_dir=folder, device="cpu", **{**arguments, **more})


# What it says


def test_a_run_begins_with_what_it_is_and_ends_with_what_came_of_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = succeed(*COMMAND, *PARAMETERS, "-s", "words=7", "--final-episodes", "20")
    parts = ["id         dialgym/Wordle-20-v0", "settings   words=7", "ppo (SequencePPO)"]
    parts += ["GPTPolicy, ", " parameters", "cpu", "300 timesteps, 8 dialogues at a time, seed 0"]
    parts += ["folder     runs/ppo-Wordle-20-v0-seed0", "(20 dialogues)", "model.zip"]
    for part in parts:
        assert part in text
    assert "evaluate runs/ppo-Wordle-20-v0-seed0\n" in text
    record = json.loads((tmp_path / "runs/ppo-Wordle-20-v0-seed0" / RECORD).read_text())
    assert record["config"]["env_kwargs"] == {"words": 7}
    assert record["learned"] >= 300
    assert dialgym.Result.from_dict(record["result"])[SMALL].returns.shape == (1, 20)


@pytest.mark.parametrize("words", by_day([None, 7], 7))
def test_the_command_at_the_end_scores_the_run(words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    settings = ("-s", f"words={words}") if words else ()
    text = succeed(*COMMAND, *PARAMETERS, *settings, "--final-episodes", "10")
    command = text.partition("dialgym evaluate ")[2].splitlines()[0].split()
    told = text.partition("return ")[2].split()[0]
    scored = succeed("evaluate", *command, "-n", "10", "--seeds", "0")
    assert told in scored
    assert "Wordle-20-v0" in scored


def test_the_command_at_the_end_of_an_offline_run_scores_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    dialgym.collect(SMALL, "random-mixture", 40, path="games", env_kwargs={"words": 7})
    text = succeed(
        "train", "bc", SMALL, "-d", "games", "--timesteps", "5", "--device", "cpu",
        "-p", "policy_kwargs={n_layer: 1, n_embd: 16}", "--final-episodes", "10",
    )  # fmt: skip
    assert "40 stored dialogues, games" in text
    command = text.partition("dialgym evaluate ")[2].splitlines()[0].split()
    assert text.partition("return ")[2].split()[0] in succeed("evaluate", *command, "-n", "10",
                                                              "--seeds", "0")  # fmt: skip


def test_an_id_of_ones_own_is_part_of_the_command(tmp_path, monkeypatch):
    text = succeed(
        "train", "maskable-ppo", "tests.support.toy_acts:Wishes-act", "--timesteps", "16",
        "--n-envs", "2", "-p", "n_steps=8", "-p", "batch_size=8", "--out", str(tmp_path / "run"),
        "--final-episodes", "0", "--device", "cpu",
    )  # fmt: skip
    command = text.partition("dialgym evaluate ")[2].splitlines()[0].split()
    assert command[1] == "tests.support.toy_acts:Wishes-act"
    assert "Wishes-act" in succeed("evaluate", *command, "-n", "4", "--seeds", "0")


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A function that forgets what a process knows of the module `mine`, which registers a task."""
    (tmp_path / "mine.py").write_text(GUESS.replace("MODULE", "mine"))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(registry, "_added", {})

    def forget():
        sys.modules.pop("mine", None)
        registry._added.clear()
        trust._allowed.clear()
        for name in [name for name in gym.registry if name.startswith("Guess-")]:
            del gym.registry[name]

    yield forget
    forget()


def test_commands_that_are_printed_know_the_module_of_an_id(own, tmp_path, monkeypatch):
    name, brief = "mine:Guess-v0", ("--timesteps", "32", "--n-envs", "4", "-p", "n_steps=8")
    text = succeed("train", "ppo", name, *brief, *PARAMETERS[4:], "--out", "run", "--device",
                   "cpu", "--final-episodes", "0")  # fmt: skip
    assert TrainConfig.from_run("run", trust=True).env_id == name
    assert yaml.safe_load(Path("run/config.yml").read_text("utf-8"))["env_id"] == name
    printed = {word: text.partition(f"dialgym {word} ")[2].splitlines()[0].split()
               for word in ("evaluate", "report")}  # fmt: skip
    for command in (["evaluate", *printed["evaluate"]], ["evaluate", "run", "--trust"]):
        own()
        assert "Guess-v0" in succeed(*command, "-n", "2", "--seeds", "0")
    own()
    assert "names 'mine:Guess-v0', which could run code" in fail("evaluate", "run")
    importlib.import_module("mine")  # in Python, by who knows it
    assert dialgym.evaluate("run", episodes=2, seeds=(0,)).by_id.keys() == {"Guess-v0"}
    own()
    assert "open run/report.html" in succeed("report", *printed["report"], "-n", "2")
    own()
    interrupted = TrainConfig.from_run("run", trust=True)
    with monkeypatch.context() as patch:
        patch.setattr(agents, "run_training", interrupt)
        said = run("train", "--resume", "run", "--trust").stderr.splitlines()[-1]
    assert said == f"Go on with: dialgym train ppo {name} --resume run --trust"
    own()
    goes_on = ("--resume", "run", "--timesteps", "64")
    assert "goes on    from 32 timesteps" in succeed("train", interrupted.algorithm, name, *goes_on)


def interrupt(config):
    raise KeyboardInterrupt


# Where it was trained


def test_a_model_remembers_where_it_was_trained(tmp_path):
    model = train(tmp_path, env_kwargs={"words": 7})
    place = {"id": SMALL, "settings": {"words": 7}, "left_out": []}
    assert agents.load(tmp_path / "model.zip").trained_in == place
    moved = (tmp_path / "model.zip").rename(tmp_path / "moved.zip")
    again = dialgym.evaluate(moved, episodes=5, seeds=(0,))
    live = dialgym.evaluate(model, episodes=5, seeds=(0,))
    assert again.env_kwargs == {"words": 7}
    assert again[SMALL].returns.tolist() == live[SMALL].returns.tolist()
    assert "It was trained in dialgym/Wordle-20-v0 with words=7. Use it where" in fail(
        "evaluate", str(moved), SMALL, "-s", "tokenizer=word", "-n", "2"
    )


def test_settings_that_are_objects_are_not_remembered(tmp_path):
    env = dialgym.sb3_vec_env(SMALL, 2, tokenizer=CharTokenizer("abcdefghijklmnopqrstuvwxyz "))
    small = {"n_layer": 1, "n_embd": 16}
    agents.SequencePPO("GPTPolicy", env, n_steps=8, policy_kwargs=small).save(tmp_path / "model")
    with pytest.raises(ValueError, match="trained with tokenizer given as objects"):
        dialgym.evaluate(tmp_path / "model.zip")


@pytest.mark.parametrize("policy", ["random", "nothing"])
def test_a_scripted_policy_needs_an_id(policy):
    assert f"policy '{policy}': expected an environment too" in fail("evaluate", policy)


# What it refuses


def test_a_second_run_does_not_overwrite_the_first(tmp_path):
    train(tmp_path, seed=1, checkpoint_every=1)
    before = (tmp_path / "model.zip").read_bytes()
    with pytest.raises(FileExistsError, match=r"holds a run already \(ppo on dialgym/Wordle-20-v0"):
        train(tmp_path, seed=2)
    assert (tmp_path / "model.zip").read_bytes() == before
    text = fail(*COMMAND, *PARAMETERS, "--out", str(tmp_path))
    assert f"dialgym train --resume {tmp_path}`; begin again with --force" in text
    for wrong, message in [
        ({"hyperparameters": {"learning_rate": -1}}, "learning_rate"),
        ({"init_from": tmp_path / "nothing"}, "no saved model at"),
        ({"init_from": tmp_path}, "init_from: expected something outside of the run that force"),
    ]:
        with pytest.raises((ValueError, FileNotFoundError), match=message):
            train(tmp_path, force=True, **wrong)
    assert (tmp_path / "model.zip").read_bytes() == before
    assert (tmp_path / "checkpoint.zip").exists()
    (tmp_path / "mine.txt").write_text("kept")
    train(tmp_path, seed=2, force=True, checkpoint_every=0)
    assert (tmp_path / "model.zip").read_bytes() != before
    assert not (tmp_path / "checkpoint.zip").exists()
    assert (tmp_path / "mine.txt").read_text() == "kept"
    with pytest.raises(FileExistsError, match="It left no checkpoint to resume"):
        train(tmp_path, resume=True)
    with pytest.raises(ValueError, match="either resume"):
        train(tmp_path, resume=True, force=True)


def test_resuming_without_a_checkpoint_says_so(tmp_path):
    text = succeed(*COMMAND, *PARAMETERS, "--resume", str(tmp_path), "--final-episodes", "0")
    assert f"No checkpoint in {tmp_path} to resume: the run begins." in text


# Ctrl-C


def interrupt_at(monkeypatch, kind, rollouts, number=signal.SIGINT):
    """Ctrl-C, or another signal, at the end of a rollout."""
    plain, seen = kind._on_rollout_end, []

    def ended(self):
        plain(self)
        seen.append(0)
        if len(seen) == rollouts:
            os.kill(os.getpid(), number)

    monkeypatch.setattr(kind, "_on_rollout_end", ended)


@pytest.mark.slow
def test_an_interrupted_run_leaves_a_checkpoint_and_goes_on_exactly(tmp_path, monkeypatch):
    train(tmp_path / "whole", total_timesteps=900)
    with monkeypatch.context() as patch:
        interrupt_at(patch, LearningCurve, 2)
        patch.setattr(LearningCurve, "seconds", 1000.0)
        with pytest.raises(agents.Interrupted, match="interrupted at 576 timesteps") as caught:
            train(tmp_path / "cut", total_timesteps=900)
    assert caught.value.folder == tmp_path / "cut"
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    with pytest.warns(UserWarning, match="its model has learned for 576 timesteps"):
        assert "return" in succeed("evaluate", str(tmp_path / "cut"), "-n", "4")
    with monkeypatch.context() as patch:  # as in a process that has loaded no algorithm yet
        patch.delitem(sys.modules, "agents.buffers.sequences")
        with pytest.warns(UserWarning, match="has learned for 576 timesteps"):
            model_archive(tmp_path / "cut" / "checkpoint.zip")
    train(tmp_path / "cut", total_timesteps=900, resume=True)
    assert_same_run(tmp_path / "whole", tmp_path / "cut")
    assert json.loads((tmp_path / "cut" / RECORD).read_text())["seconds"] > 1000


@pytest.mark.parametrize(
    ("number", "code", "said"),
    [(signal.SIGINT, 130, "Interrupted at"), (signal.SIGTERM, 143, "Terminated")],
)
def test_an_interrupted_command_prints_the_one_that_goes_on(
    number, code, said, tmp_path, monkeypatch
):
    dialgym.collect(SMALL, "random-mixture", 40, path=tmp_path / "games")
    command = ["train", "bc", SMALL, "-d", str(tmp_path / "games"), "--timesteps", "20", "-p",
               "log_interval=5", "-p", "policy_kwargs={n_layer: 1, n_embd: 16}", "--force",
               "--out", str(tmp_path / "my run")]  # fmt: skip
    monkeypatch.setattr("sys.argv", ["dialgym", *command])
    with monkeypatch.context() as patch:
        interrupt_at(patch, LossCurve, 2, number)
        result = run(*command)
    assert result.exit_code == code
    assert said in result.stderr
    last = result.stderr.splitlines()[-1]
    assert last == f"Go on with: dialgym train --resume '{tmp_path / 'my run'}'"
    text = succeed("train", "--resume", str(tmp_path / "my run"), "--final-episodes", "0")
    assert "from 10 timesteps" in text


OFFLINE = ("bc", SMALL, "-d", "games", "-p", "policy_kwargs={n_layer: 1, n_embd: 16}", "-p",
           "batch_size=8", "--final-episodes", "0")  # fmt: skip


def test_a_run_on_stored_dialogues_stops_within_an_interval_of_the_log_and_goes_on_exactly(
    monkeypatch, tmp_path
):
    monkeypatch.chdir(tmp_path)
    dialgym.collect(SMALL, "random-mixture", 40, path="games")
    command = ("train", *OFFLINE, "--timesteps", "12", "-p", "log_interval=5", "--out")
    succeed(*command, "whole")
    plain = LossCurve._on_step
    with monkeypatch.context() as patch:

        def step(self):
            if self.num_timesteps == 7:
                os.kill(os.getpid(), signal.SIGINT)
            return plain(self)

        patch.setattr(LossCurve, "_on_step", step)
        assert "Interrupted at 7 timesteps" in run(*command, "cut").stderr
    with pytest.warns(UserWarning, match="has learned for 7 timesteps"):
        assert agents.load("cut").num_timesteps == 7
    succeed("train", "--resume", "cut", "--final-episodes", "0")
    assert_same_run(tmp_path / "whole", tmp_path / "cut")


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_command_after_its_gradient_step_with_a_model(
    number, monkeypatch, tmp_path
):
    monkeypatch.chdir(tmp_path)
    dialgym.collect(SMALL, "random-mixture", 40, path="games")
    command = [sys.executable, "-m", "dialgym", "train", *OFFLINE, "--timesteps", str(10**9), "-p",
               f"log_interval={10**9}", "--save-freq", "3", "--out", "cut"]  # fmt: skip
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    wait_until(lambda: any(Path("cut/checkpoints").glob("*.zip")), process)
    process.send_signal(number)
    said = process.communicate()[1]
    assert process.returncode == 128 + number
    assert said.splitlines()[-1] == "Go on with: dialgym train --resume cut"
    assert Path("cut/checkpoint.zip").is_file(), said
    with pytest.warns(UserWarning, match="goes on to the end"):
        assert agents.load("cut").num_timesteps >= 3
    with pytest.warns(UserWarning, match="goes on to the end"):
        assert "return" in succeed("evaluate", "cut", "-n", "4")
    words = panel_named("wordle")
    with pytest.raises(ValueError, match="a run that has not ended, and no row"):
        score_policy(words, words.environments[0], "cut", "cut", 0, tmp_path / "rows")
