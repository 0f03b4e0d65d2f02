"""The smallest script of each library's documentation reaches its bar, where it is installed."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.waiting import HANG_GUARD

FOLDER = Path(__file__).parents[2] / "examples" / "integrations"
NEEDS = {
    "agilerl": ("agilerl",),
    "cleanrl": ("torch",),
    "d3rlpy": ("d3rlpy",),
    "pettingzoo": ("pettingzoo",),
    "rl_zoo3": ("rl_zoo3",),
    "rllib": ("ray", "torch"),
    "sample_factory": ("sample_factory",),
    "skrl": ("skrl",),
    "stable_baselines3": ("stable_baselines3", "sb3_contrib"),
    "tianshou": ("tianshou",),
    "torchrl": ("torchrl",),
}
MASKED = ("pettingzoo", "rllib", "stable_baselines3")
"""Libraries whose script has a run on tokens, with masks."""
RUNS = [(name, "act") for name in NEEDS] + [(name, "tokens") for name in MASKED]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "view"), RUNS)
def test_a_library_learns(name, view, tmp_path):
    missing = [module for module in NEEDS[name] if importlib.util.find_spec(module) is None]
    if missing:
        pytest.skip(f"{', '.join(missing)} is not installed")
    command = [sys.executable, str(FOLDER / f"with_{name}.py"), view]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=HANG_GUARD)
    assert run.returncode == 0, f"{run.stdout[-2000:]}\n{run.stderr[-4000:]}"
    assert f"{view}: mean return" in run.stdout


def test_every_script_is_run_and_in_the_table():
    scripts = {path.stem.removeprefix("with_") for path in FOLDER.glob("with_*.py")}
    assert scripts == set(NEEDS)
    table = (FOLDER.parents[1] / "docs" / "integrations.md").read_text("utf-8")
    assert [name for name in scripts if f"with_{name}.py" not in table] == []
