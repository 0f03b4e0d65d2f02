"""Runs of two processes under `torchrun`, for the tests of distributed training."""

import os
import subprocess
import sys
from pathlib import Path

from tests.support.waiting import HANG_GUARD

ROOT = Path(__file__).parents[2]
SUPPORT = Path(__file__).parent
CONFIGS = ROOT / "agents" / "configs" / "accelerate"
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
ALONE = {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}


def two_processes(script: list[str], *arguments: str, **environ: str) -> str:
    """What two processes of a script (a path, or `-m` and a module) print; they must succeed."""
    run = subprocess.run(
        [*TORCHRUN, *script, *arguments],
        capture_output=True,
        text=True,
        timeout=HANG_GUARD,
        env={**os.environ, **ALONE, "PYTHONPATH": str(ROOT), **environ},
    )
    assert run.returncode == 0, run.stderr[-3000:]
    return run.stdout
