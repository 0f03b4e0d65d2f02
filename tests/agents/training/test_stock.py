"""Stock algorithms of Stable-Baselines3 train, are killed and go on as if nothing had happened."""

import csv
import os
import re
import signal
import subprocess
import sys

import gymnasium as gym
import numpy as np
import pytest
import torch

pytest.importorskip("stable_baselines3")
import agents
import dialgym
from agents.training.checkpoint import FILE
from tests.support.commands import fail
from tests.support.waiting import wait_until

ACTS, WORDS = "SlotFilling-act-v0", "Wordle-20-v0"
SMALL = {"n_steps": 32, "batch_size": 64, "policy_kwargs": {"net_arch": [16]}}
REPLAY = {"learning_starts": 200, "batch_size": 32, "target_update_interval": 300}
REPLAY |= {"buffer_size": 1500, "policy_kwargs": {"net_arch": [16]}}
ALGORITHMS = {
    "stock-ppo": SMALL,
    "maskable-ppo": SMALL,
    "recurrent-ppo": {**SMALL, "policy_kwargs": {"net_arch": [8], "lstm_hidden_size": 8}},
    "stock-a2c": {"n_steps": 8, "policy_kwargs": {"net_arch": [16]}},
    "trpo": SMALL,
    "stock-dqn": REPLAY,
    "qrdqn": {**REPLAY, "policy_kwargs": {"net_arch": [16], "n_quantiles": 5}},
}


def command(algo, folder, steps, *more, id=ACTS):
    params = [f"--param={name}={value}" for name, value in ALGORITHMS[algo].items()]
    options = ["--timesteps", str(steps), "--n-envs", "4", "--seed", "3", "--out", str(folder)]
    options += ["--eval-freq", "1500", "--eval-episodes", "4", "--samples", "1"]
    return [sys.executable, "-m", "dialgym", "train", algo, id, *options, *params, *more]


def start(*arguments, **more):
    return subprocess.Popen(command(*arguments, **more))


def resume(folder):
    return subprocess.Popen([sys.executable, "-m", "dialgym", "train", "--resume", str(folder)])


def curve(folder):
    with open(folder / "learning_curve.csv", encoding="utf-8", newline="") as file:
        return [{**row, "seconds": None} for row in csv.DictReader(file)]


def evaluations(folder):
    with np.load(folder / "evaluations.npz") as found:
        return {name: found[name].tolist() for name in found}


def weights(file):
    return agents.load(file).policy.state_dict()


@pytest.mark.slow
@pytest.mark.parametrize("algo", ["stock-dqn", "maskable-ppo"])
def test_a_killed_run_at_the_command_line_goes_on_exactly(algo, tmp_path):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    often = ["--checkpoint-every", "1"]
    assert start(algo, whole, 6000, *often).wait() == 0
    process = start(algo, killed, 6000, *often)
    wait_until((killed / FILE).exists, process)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert not (killed / "model.zip").exists()
    assert resume(killed).wait() == 0
    assert [int(row["timesteps"]) // 1000 for row in curve(whole)] == [1, 2, 3, 4, 5, 6]
    assert curve(killed) == curve(whole)
    assert evaluations(killed) == evaluations(whole)
    same_models(whole, killed)


def same_models(whole, other):
    for name in ("model.zip", "best_model.zip"):
        first, second = weights(whole / name), weights(other / name)
        assert all(torch.equal(a, b) for a, b in zip(first.values(), second.values(), strict=True))


@pytest.mark.slow
def test_sigterm_leaves_a_checkpoint_as_ctrl_c_does(tmp_path):
    """As schedulers end a job; there is no other checkpoint."""
    whole, ended = tmp_path / "whole", tmp_path / "ended"
    never = ["--checkpoint-every", "0"]
    assert start("stock-dqn", whole, 3000, *never).wait() == 0
    run = command("stock-dqn", ended, 3000, *never)
    process = subprocess.Popen(run, stderr=subprocess.PIPE, text=True)
    wait_until((ended / "learning_curve.csv").exists, process)
    process.terminate()
    _, said = process.communicate()
    assert process.returncode == 128 + signal.SIGTERM, said
    assert "Terminated: a checkpoint follows the update that is under way" in said
    assert re.search(r"Go on with: dialgym train --resume \S+\n", said)
    assert (ended / FILE).exists()
    assert not (ended / "model.zip").exists()
    assert resume(ended).wait() == 0
    assert curve(ended) == curve(whole)
    assert evaluations(ended) == evaluations(whole)
    same_models(whole, ended)


QUICK = ("stock-dqn", "maskable-ppo")


def of_stock(algo: str):
    return pytest.param(algo, ACTS, marks=() if algo in QUICK else pytest.mark.slow)


@pytest.mark.parametrize(("algo", "id"), [*map(of_stock, ALGORITHMS), ("stock-dqn", WORDS)])
def test_a_run_that_goes_on_equals_one_that_was_not_cut(algo, id, tmp_path):
    arguments = {"n_envs": 4, "seed": 1, "hyperparameters": ALGORITHMS[algo], "progress_bar": False}
    arguments |= {"checkpoint_every": 1, "algorithm": algo, "env_id": id}
    # A schedule sees how long the run is to be: the exploration of DQN is over before the cut.
    still = {"exploration_fraction": 0.01} if "dqn" in algo else {}
    arguments["hyperparameters"] = {**arguments["hyperparameters"], **still, "learning_rate": 1e-3}
    whole = agents.train(total_timesteps=2048, log_dir=tmp_path / "whole", **arguments)
    agents.train(total_timesteps=1100, log_dir=tmp_path / "cut", **arguments)
    cut = agents.train(total_timesteps=2048, log_dir=tmp_path / "cut", resume=True, **arguments)
    assert type(cut) is type(whole)
    assert cut.num_timesteps == whole.num_timesteps
    ours, theirs = whole.policy.state_dict(), cut.policy.state_dict()
    assert all(torch.equal(a, b) for a, b in zip(ours.values(), theirs.values(), strict=True))
    assert curve(tmp_path / "cut") == curve(tmp_path / "whole")


def test_a_gpt_trains_under_a_stock_algorithm_with_masks(tmp_path):
    small = {"n_layer": 1, "n_head": 1, "n_embd": 8}
    more = {"n_envs": 2, "n_steps": 16, "batch_size": 16, "policy_kwargs": small}
    arguments = {"algorithm": "maskable-ppo", "env_id": "Wordle-Hard-v0", "hyperparameters": more}
    model = agents.train(total_timesteps=64, log_dir=tmp_path, progress_bar=False, **arguments)
    assert type(model.policy) is agents.MaskableGPTPolicy
    loaded = agents.load(tmp_path / "model.zip")
    assert loaded.rollout_buffer_class is agents.MaskableEpisodeRolloutBuffer
    assert dialgym.evaluate(tmp_path / "model.zip", "Wordle-Hard-v0", episodes=4).mean_return < 0


LETTERS = {"algorithm": "stock-dqn", "env_id": WORDS, "n_envs": 4, "seed": 1, "progress_bar": False}
LETTERS |= {"eval_freq": 500, "eval_episodes": 4, "samples": 2}


def said(folder):
    lines = [ln for f in (folder / "samples").iterdir() for ln in f.read_text("utf-8").splitlines()]
    return {line.removeprefix("system: ") for line in lines if line.startswith("system: ")}


@pytest.mark.parametrize(
    "more", [{}, {"env_wrapper": {"dialgym.VectorReplaceForbidden": {"choose": "nearest"}}}]
)
def test_token_views_have_words_said_by_algorithms_without_masks(more, tmp_path):
    arguments = {**LETTERS, "hyperparameters": {**REPLAY, **more}, "total_timesteps": 1000}
    agents.train(log_dir=tmp_path, **arguments)
    assert said(tmp_path)
    played = dialgym.collect(WORDS, tmp_path, 4)
    spoken = {turn["text"] for game in played for turn in game["turns"] if turn["said"]}
    assert said(tmp_path) | spoken <= set(gym.make(f"dialgym/{WORDS}").unwrapped.task.answers)


def test_without_the_wrapper_letters_spell_no_words(tmp_path):
    arguments = {
        **LETTERS,
        "hyperparameters": {**REPLAY, "env_wrapper": None},
        "total_timesteps": 1000,
    }
    agents.train(log_dir=tmp_path, **arguments)
    assert not said(tmp_path) & set(gym.make(f"dialgym/{WORDS}").unwrapped.task.answers)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("dialgym.ReplaceForbiden", "unknown env_wrapper .* Did you mean 'dialgym.ReplaceForb"),
        ("os.system", "unknown env_wrapper 'os.system'"),
        ({"dialgym.ReplaceForbidden": {"chose": "random"}}, "unknown setting 'chose'"),
        ({"dialgym.ReplaceForbidden": {"choose": "best"}}, "choose of VectorReplaceForbidden must"),
        (["dialgym.ReplaceForbidden", "dialgym.ReplaceForbidden"], "env_wrapper: expected a name"),
    ],
)
def test_a_bad_wrapper_is_one_clear_error(given, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        agents.train(
            WORDS,
            "stock-dqn",
            total_timesteps=100,
            log_dir=tmp_path,
            hyperparameters={"env_wrapper": given},
        )
    assert not any(tmp_path.iterdir())


def test_the_whole_replay_buffer_is_kept(tmp_path):
    arguments = {"n_envs": 4, "seed": 1, "hyperparameters": REPLAY, "progress_bar": False}
    arguments |= {
        "checkpoint_every": 1,
        "algorithm": "stock-dqn",
        "env_id": ACTS,
        "log_dir": tmp_path,
    }
    agents.train(total_timesteps=1300, **arguments)
    model = agents.train(total_timesteps=1000, resume=True, **arguments)  # nothing is left to do
    assert model.num_timesteps == 1304
    buffer = model.replay_buffer
    assert buffer.pos == 326
    assert not buffer.full
    assert np.ptp(buffer.actions[:326]) > 0
    assert not buffer.actions[326:].any()


def test_what_an_algorithm_does_not_play_is_one_clear_error(tmp_path):
    assert (
        "ppo plays tokens, got 'dialgym/SlotFilling-act-v0', a view of acts; these play it: "
        in (fail("train", "ppo", ACTS))
    )
    assert "n_timesteps of" in fail("train", "stable_baselines3.ddpg.ddpg:DDPG", ACTS)
