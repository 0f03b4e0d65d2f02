"""Recipe: GPTs in multi-domain dialogue, in words: a clone of a few expert dialogues, then PPO.

A token is a word of the grammar; what may be said next is masked. The rule system's dialogues are
on the frozen train goals, PPO plays goals drawn from the goal model, both are scored on the frozen
test goals against the agenda user.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import dialgym
from benchmarks.recipes.runs import Run, train_by
from benchmarks.recipes.tables import Line, with_interval

ID = "dialgym/MultiWOZ-v0"
TRAIN, TEST = {"goals": "train"}, {"goals": "test"}
DIALOGUES, STEPS = 200, 1_000
"""Expert dialogues to begin with, and gradient steps of cloning."""
TOKENS, EPISODES = 400_000, 1_000
CLONED: Mapping[str, Any] = {"batch_size": 16}
PLAYED: Mapping[str, Any] = {
    "n_envs": 64,
    "n_steps": 96,
    "batch_size": 1024,
    "learning_rate": "lin_0.0004",
    "gae_lambda": 0.95,
    "ent_coef": 0.0,
    "vf_coef": 0.05,
    "kl": {"coef": 0.02},
    "normalize": {"norm_obs": False, "norm_reward": True, "gamma": 1.0},
}
"""Hyperparameters other than the built-in ones."""


def runs(folder: Path, seeds: int) -> list[Run]:
    """Every training of the recipe, seed by seed."""
    return [
        Run(method, ID, seed, folder / f"{name}-seed{seed}", train, env_kwargs=TEST)
        for seed in range(seeds)
        for name, method, train in (("bc", "BC", clone), ("ppo", "SequencePPO from BC", play))
    ]


def clone(run: Run) -> None:
    """Imitation of the rule system."""
    path = run.folder.parent / f"dialogues-seed{run.seed}"
    dialgym.collect(ID, "rule", DIALOGUES, run.seed, path=path, env_kwargs=TRAIN)
    train_by("bc", run, data=path, total_timesteps=STEPS, hyperparameters=dict(CLONED))


def play(run: Run) -> None:
    """PPO from the clone of the same seed."""
    begin = run.folder.parent / f"bc-seed{run.seed}" / "model.zip"
    train_by("ppo", run, init_from=begin, total_timesteps=TOKENS, hyperparameters=dict(PLAYED))


def gain(table: Sequence[Line]) -> str:
    """Gain of PPO over the clone of the same seed, as a sentence."""
    cloned, played = table
    added = played.solved.mean(1) - cloned.solved.mean(1)
    return f"PPO less the clone of the same seed, success: {with_interval(added)}.\n"


def _success(line: Line) -> str:
    return with_interval(np.asarray(line.solved.mean(1)))


COLUMNS = {"success, by seeds": _success}
BASE = ("method", "seeds", "mean return", "success")
MORE = gain
NOTE = f"""\
{EPISODES:,} dialogues a seed on the frozen test goals against the agenda user, words drawn. The
clone has seen {DIALOGUES:,} dialogues of the rule system, PPO says {TOKENS:,} tokens more. In
brackets 95 % intervals (Student's t over the seeds' means).
"""
