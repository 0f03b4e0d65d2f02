"""Data parallel training: several processes end with one and the same policy."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from agents.online.ranks import Ranks

HERE = Path(__file__).parent
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]


def test_two_processes_learn_one_policy():
    run = subprocess.run(
        [*TORCHRUN, str(HERE / "two_ranks.py"), "2"],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""},
    )
    assert run.returncode == 0, run.stderr[-3000:]
    assert {"rank 0 is right", "rank 1 is right"} <= set(run.stdout.splitlines())


def test_a_missing_process_is_noticed(monkeypatch):
    """`accelerate launch --cpu` was seen to start one process where two were asked for."""
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setattr(Ranks, "_accelerator", type("Alone", (), {"num_processes": 1}))
    with pytest.raises(RuntimeError, match="expected 2 processes .WORLD_SIZE., got 1"):
        Ranks()


def test_one_process_needs_nothing(monkeypatch):
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    ranks = Ranks()
    assert (ranks.count, ranks.is_first) == (1, True)
    assert ranks.gather("x") == ["x"]
    assert "_accelerator" not in vars(ranks)
