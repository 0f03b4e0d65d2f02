"""Data parallel training: several processes end with one and the same policy."""

import os
import subprocess
import sys

import psutil
import pytest
import torch

import agents
import dialgym
from agents.distributed.processes import Processes
from agents.training.checkpoint import FILE
from tests.support.commands import succeed
from tests.support.resuming import assert_same_run, curve
from tests.support.torchrun import ALONE, ROOT, SUPPORT, TORCHRUN
from tests.support.waiting import HANG_GUARD, wait_until


@pytest.mark.slow
def test_two_processes_learn_one_policy_of_each_kind(tmp_path):
    """Online, from stored dialogues and with a language model; the last as one process does."""
    dialgym.collect("Wordle-20-v0", "random-mixture", 40, seed=0, path=tmp_path / "games")
    script = [SUPPORT / "two_ranks.py", "2", tmp_path / "games", tmp_path / "two"]
    run = subprocess.run(
        [sys.executable, *map(str, script)], env={**os.environ, **ALONE, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, timeout=HANG_GUARD, start_new_session=True,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr[-3000:]
    said = run.stdout.splitlines()
    assert said.count("rank 0 is right") == said.count("rank 1 is right") == 3
    arguments = ["bc", "Wordle-20-v0", "-d", str(tmp_path / "games"), "--timesteps", "10"]
    arguments += ["-p", "batch_size=8", "-p", "policy_kwargs={n_layer: 1, n_embd: 16}"]
    succeed("train", *arguments, "--out", str(tmp_path / "one"))
    two, one = (agents.load(tmp_path / name / "model.zip").policy for name in ("two", "one"))
    for a, b in zip(two.parameters(), one.parameters(), strict=True):
        torch.testing.assert_close(a, b, atol=1e-4, rtol=1e-3)


def test_a_missing_process_is_noticed(monkeypatch):
    """`accelerate launch --cpu` was seen to start one process where two were asked for."""
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setattr(Processes, "_accelerator", type("Alone", (), {"num_processes": 1}))
    with pytest.raises(RuntimeError, match=r"expected 2 processes \(WORLD_SIZE\), got 1"):
        Processes()


def test_what_no_process_has_a_gradient_of_gets_none(monkeypatch):
    """Else Adam's momentum goes on moving it: ArCHer's actor in the steps of its critic."""
    monkeypatch.setattr(Processes, "_accelerator", type("Two", (), {"num_processes": 2}))
    monkeypatch.setenv("WORLD_SIZE", "2")
    processes = Processes()
    of_other = torch.tensor([1.0, 0.0, 0.0, 10.0, 20.0, 0.0, 0.0])
    monkeypatch.setattr(processes, "sum", lambda tensor: tensor + of_other)
    one_each, none, mine = (torch.nn.Parameter(torch.zeros(n)) for n in (2, 1, 1))
    mine.grad = torch.tensor([3.0])
    processes.sum_gradients([one_each, none, mine])
    assert one_each.grad.tolist() == [10, 20]
    assert none.grad is None
    assert mine.grad.tolist() == [3]


def test_one_process_needs_nothing(monkeypatch):
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    monkeypatch.setenv("RANK", "1")  # which others set for purposes of their own
    processes = Processes()
    assert (processes.count, processes.is_first) == (1, True)
    assert processes.gather("x") == ["x"]
    assert "_accelerator" not in vars(processes)


PLAY = ["ppo", "Wordle-20-v0", "--n-envs", "4", "--timesteps", "4000", "-p", "n_steps=18"]


def start(folder, *more, arguments=PLAY):
    """`dialgym train` in two processes."""
    return subprocess.Popen(
        [*TORCHRUN, "-m", "dialgym", "train", *arguments, "--out", str(folder), *more],
        env={**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


@pytest.mark.slow
def test_two_killed_processes_go_on_exactly(tmp_path):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    one, other = start(whole), start(killed)
    wait_until((killed / FILE).exists, other)
    for process in [*psutil.Process(other.pid).children(recursive=True), other]:
        process.kill()
    other.wait()
    assert one.wait() == 0
    assert not (killed / "model.zip").exists()
    assert start(killed, "--resume", str(killed)).wait() == 0
    assert agents.load(killed / "model.zip").num_timesteps >= 4000
    assert_same_run(whole, killed)
    assert len(curve(whole)) > 20
    with pytest.raises(ValueError, match=r"processes: 2 -> 1"):
        agents.train("Wordle-20-v0", "ppo", n_envs=4, log_dir=killed, resume=True,
                     hyperparameters={"n_steps": 18}, progress_bar=False)  # fmt: skip
