"""Stock algorithms of Stable-Baselines3: killed runs, token views, wrappers, replay buffers."""

import os
import re
import signal
import subprocess
import sys

import gymnasium as gym
import numpy as np
import pytest

pytest.importorskip("stable_baselines3")
import agents
import dialgym
from agents.training.checkpoint import FILE
from tests.support.by_day import at_night
from tests.support.commands import fail
from tests.support.resuming import assert_same_run, curve
from tests.support.waiting import wait_until

ACTS, WORDS = "SlotFilling-act-v0", "Wordle-20-v0"
SMALL = {"n_steps": 32, "batch_size": 64, "policy_kwargs": {"net_arch": [16]}}
REPLAY = {"learning_starts": 200, "batch_size": 32, "target_update_interval": 300}
REPLAY |= {"buffer_size": 1500, "policy_kwargs": {"net_arch": [16]}}
ALGORITHMS = {"maskable-ppo": SMALL, "stock-dqn": REPLAY}


def command(algo, folder, steps, *more, id=ACTS):
    params = [f"--param={name}={value}" for name, value in ALGORITHMS[algo].items()]
    options = ["--timesteps", str(steps), "--n-envs", "4", "--seed", "3", "--out", str(folder)]
    options += ["--eval-freq", "1500", "--eval-episodes", "4", "--samples", "1"]
    return [sys.executable, "-m", "dialgym", "train", algo, id, *options, *params, *more]


def start(*arguments, **more):
    return subprocess.Popen(command(*arguments, **more))


def resume(folder):
    return subprocess.Popen([sys.executable, "-m", "dialgym", "train", "--resume", str(folder)])


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
    assert_same_run(whole, killed)


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
    assert_same_run(whole, ended)


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
LETTERS |= {"eval_freq": 200, "eval_episodes": 4, "samples": 2}


def said(folder):
    lines = [ln for f in (folder / "samples").iterdir() for ln in f.read_text("utf-8").splitlines()]
    return {line.removeprefix("system: ") for line in lines if line.startswith("system: ")}


NEAREST = {"env_wrapper": {"dialgym.VectorReplaceForbidden": {"choose": "nearest"}}}


@pytest.mark.parametrize(
    ("algorithm", "more"),
    [("stock-dqn", {}), at_night(("stock-dqn", NEAREST)), ("dqn", {})],
)
def test_token_views_have_words_said(algorithm, more, tmp_path):
    """By algorithms without masks, as the wrapper replaces letters, and by one with masks."""
    arguments = {**LETTERS, "algorithm": algorithm, "total_timesteps": 400}
    agents.train(log_dir=tmp_path, hyperparameters={**REPLAY, **more}, **arguments)
    assert said(tmp_path)
    played = dialgym.collect(WORDS, tmp_path, 4)
    spoken = {turn["text"] for game in played for turn in game["turns"] if turn["said"]}
    assert said(tmp_path) | spoken <= set(gym.make(f"dialgym/{WORDS}").unwrapped.task.answers)


def test_without_the_wrapper_letters_spell_no_words(tmp_path):
    plain = {**REPLAY, "env_wrapper": None}
    agents.train(log_dir=tmp_path, hyperparameters=plain, total_timesteps=400, **LETTERS)
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
        agents.train(WORDS, "stock-dqn", log_dir=tmp_path, hyperparameters={"env_wrapper": given})
    assert not any(tmp_path.iterdir())


def test_the_whole_replay_buffer_is_kept(tmp_path):
    arguments = {"n_envs": 4, "seed": 1, "hyperparameters": REPLAY, "progress_bar": False}
    arguments |= {"checkpoint_every": 1, "algorithm": "stock-dqn", "env_id": ACTS}
    arguments["log_dir"] = tmp_path
    agents.train(total_timesteps=500, **arguments)
    model = agents.train(total_timesteps=400, resume=True, **arguments)  # nothing is left to do
    assert model.num_timesteps == 504
    buffer = model.replay_buffer
    assert buffer.pos == 126
    assert not buffer.full
    assert np.ptp(buffer.actions[:126]) > 0
    assert not buffer.actions[126:].any()


def test_what_an_algorithm_does_not_play_is_one_clear_error(tmp_path):
    assert (
        "ppo plays tokens, got 'dialgym/SlotFilling-act-v0', a view of acts; these play it: "
        in (fail("train", "ppo", ACTS))
    )
    assert "n_timesteps of" in fail("train", "stable_baselines3.ddpg.ddpg:DDPG", ACTS)
