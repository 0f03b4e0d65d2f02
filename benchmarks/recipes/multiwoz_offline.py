"""Recipe: offline learning in multi-domain dialogue, from the logs of a mediocre system.

A clone of a few expert dialogues plays, drawing its acts; what it played is all that offline
learners see. They choose composite acts, and are scored on the frozen test goals against the
agenda user.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dialgym
from benchmarks.recipes.runs import Run, train_by
from benchmarks.recipes.tables import Line, with_interval

ID = "dialgym/MultiWOZ-Composite-act-v0"
TRAIN, DRAWN, TEST = {"goals": "train"}, {"goals": "drawn"}, {"goals": "test"}
"""Goals of the expert, of the logs, and of scoring."""
FEW, FEW_STEPS = 100, 500
"""Expert dialogues that the logging system imitates, and its gradient steps."""
LOGGED, STEPS, EPISODES = 2_000, 4_000, 1_000
METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "BC": ("bc", {}),
    "50 % BC": ("bc", {"top": 0.5}),
    "single-step": ("single-step", {}),
    "CQL": ("cql", {}),
    "ILQL": ("ilql", {}),
}


def runs(folder: Path, seeds: int) -> list[Run]:
    """Every training of the recipe, seed by seed; the logging system first."""
    found = []
    for seed in range(seeds):
        place = folder / f"seed{seed}"
        found.append(Run("logging system", ID, seed, place / "logging", imitate, env_kwargs=TEST))
        for name, (algo, settings) in METHODS.items():
            short = f"{algo}-top" if settings else algo
            found.append(Run(name, ID, seed, place / short, learn, (algo, settings), TEST))
    return found


def imitate(run: Run) -> None:
    """Cloning of the few expert dialogues."""
    data = run.folder.parent / "expert"
    dialgym.collect(ID, "rule", FEW, run.seed, path=data, env_kwargs=TRAIN)
    train_by("bc", run, data=data, total_timesteps=FEW_STEPS)


def learn(run: Run) -> None:
    """Offline learning from what the logging system of the seed has played."""
    algo, settings = run.settings
    place = run.folder.parent
    logging, data = place / "logging" / "model.zip", place / "logged"
    dialgym.collect(ID, str(logging), LOGGED, run.seed, path=data, env_kwargs=DRAWN)
    train_by(algo, run, data=data, total_timesteps=STEPS, hyperparameters=dict(settings))


def _success(line: Line) -> str:
    return with_interval(line.solved.mean(1))


COLUMNS = {"success, by seeds": _success}
BASE = ("method", "seeds", "mean return")
NOTE = f"""\
{EPISODES:,} dialogues a seed on the frozen test goals against the agenda user, acts drawn. The
logging system is a clone of {FEW} dialogues of the rule system; the others learn for {STEPS:,}
gradient steps from {LOGGED:,} dialogues that it played. In brackets 95 % intervals (Student's t
over the seeds' means).
"""
