"""A killed run goes on as if nothing had happened."""

import csv
import os
import signal
import subprocess
import sys
import time

import pytest
import torch

pytest.importorskip("stable_baselines3")
import agents
from agents.online.checkpoint import FILE

SMALL = {
    "n_steps": 36,
    "batch_size": 288,
    "n_epochs": 2,
    "policy_kwargs": {"n_layer": 1, "n_embd": 16},
}
TRAIN = """
import sys, agents
agents.train(
    "ppo", "dialgym/Wordle-20-v0", {steps}, 8, workers={workers}, seed=3, log_dir=sys.argv[1],
    overrides={small}, progress_bar=False, eval_freq=2000, eval_episodes=8,
    checkpoint_every=2, resume={resume},
)
"""


def start(folder, steps=6000, workers=0, resume=False):
    code = TRAIN.format(steps=steps, workers=workers, small=SMALL, resume=resume)
    return subprocess.Popen([sys.executable, "-c", code, str(folder)])


def curve(folder):
    with open(folder / "learning_curve.csv", newline="") as file:
        return [(r["timesteps"], r["episodes"], r["mean_return"], r["success"])
                for r in csv.DictReader(file)]  # fmt: skip


def wait_for(path, process, seconds=60):
    deadline = time.monotonic() + seconds
    while not path.exists():
        assert process.poll() is None, "the run ended before it wrote a checkpoint"
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize("workers", [0, 2])
def test_a_run_killed_and_resumed_equals_one_that_was_not(workers, tmp_path):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    assert start(whole, workers=workers).wait() == 0
    process = start(killed, workers=workers)
    wait_for(killed / FILE, process)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert not (killed / "model.zip").exists()
    assert start(killed, workers=workers, resume=True).wait() == 0
    assert curve(killed) == curve(whole)
    first, second = (agents.load(folder / "model.zip").policy for folder in (whole, killed))
    for a, b in zip(first.parameters(), second.parameters(), strict=True):
        assert torch.equal(a, b)


def test_resuming_with_other_hyperparameters_is_one_clear_error(tmp_path):
    arguments = {"algo": "ppo", "env_id": "Wordle-20-v0", "n_envs": 8, "log_dir": tmp_path}
    arguments |= {"progress_bar": False, "checkpoint_every": 1}
    agents.train(total_timesteps=600, overrides=SMALL, **arguments)
    with pytest.raises(ValueError, match=r"cannot resume .*\(n_epochs: 2 -> 3\)"):
        agents.train(overrides={**SMALL, "n_epochs": 3}, resume=True, **arguments)
    with pytest.raises(ValueError, match=r"env_kwargs: \{\} -> \{'turns': 3\}, seed: 0 -> 1"):
        agents.train(
            overrides=SMALL, resume=True, env_kwargs={"turns": 3}, **{**arguments, "seed": 1}
        )
    longer = agents.train(total_timesteps=900, overrides=SMALL, resume=True, **arguments)
    assert longer.num_timesteps >= 900
