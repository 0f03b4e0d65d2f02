"""Runs of two processes under `torchrun`, for the tests of distributed training."""

import os
import subprocess
import sys
from pathlib import Path

from tests.support.resuming import assert_same_model
from tests.support.waiting import HANG_GUARD

ROOT = Path(__file__).parents[2]
SUPPORT = Path(__file__).parent
CONFIGS = ROOT / "agents" / "configs" / "accelerate"
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
ALONE = {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}


def two_processes(script: list[str], *arguments: str, **environ: str) -> str:
    """The output of two processes of a script (a path, or `-m` and a module); they must succeed."""
    run = subprocess.run(
        [*TORCHRUN, *script, *arguments],
        capture_output=True,
        text=True,
        timeout=HANG_GUARD,
        env={**os.environ, **ALONE, "PYTHONPATH": str(ROOT), **environ},
    )
    assert run.returncode == 0, run.stderr[-3000:]
    return run.stdout


def whole_and_resumed(folder: Path, *script: str, **environ: str) -> tuple[Path, Path]:
    """Train PPO by `dialgym train` in one go, and cut off and resumed; the folders of both."""
    whole, two = folder / "whole", folder / "two"
    for out, rollouts, more in (
        (whole, 14, ()),
        (two, 12, ()),  # its last checkpoint is after the tenth
        (two, 14, ("--resume", str(two))),
    ):
        arguments = ["train", "ppo", "Wordle-20-v0", "--n-envs", "4", "--out", str(out), *more]
        arguments += ["-p", "n_steps=18", "-p", "learning_rate=0.001", "--eval-freq", "300"]
        arguments += ["-p", "policy_kwargs={n_layer: 2, n_embd: 16, n_head: 2}"]
        arguments += ["--eval-episodes", "4", "--save-freq", "300"]
        two_processes([*script, *arguments, "--timesteps", str(144 * rollouts)], **environ)
    for name in ("model.zip", "best_model.zip"):
        assert_same_model(whole / name, two / name)
    return whole, two
