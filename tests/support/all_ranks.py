"""What two processes learn, kind by kind in one launch; `tests/agents/distributed` starts it."""

import runpy
import sys
from pathlib import Path

import agents

SUPPORT = Path(__file__).parent
SCRIPTS = ("two_ranks.py", "two_language_ranks.py", "two_offline_ranks.py")
"""In this order: the last one ends its process."""


def main(expected: str, games: str, folder: str) -> None:
    small = {"batch_size": 8, "policy_kwargs": {"n_layer": 1, "n_embd": 16}}
    agents.train(
        "Wordle-20-v0", "bc", total_timesteps=10, data=games, hyperparameters=small,
        log_dir=folder, progress_bar=False,
    )  # fmt: skip
    for script in SCRIPTS:
        sys.argv = [script, expected]
        runpy.run_path(str(SUPPORT / script), run_name="__main__")


if __name__ == "__main__":
    main(*sys.argv[1:])
