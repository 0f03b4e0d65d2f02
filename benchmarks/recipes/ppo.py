"""PPO from scratch where words are few, and from a cloned policy where they are many."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import agents
import dialgym
from benchmarks.recipes.runs import Run
from benchmarks.recipes.tables import Line, lmrl_score

SMALL, LARGE = "dialgym/Wordle-20-v0", "dialgym/Wordle-200-v0"
TEACHER, GAMES, STEPS = "random-mixture", 20_000, 2_500
CLONE: dict[str, Any] = {"batch_size": 128, "policy_kwargs": {"preset": "nano", "n_head": 4}}
FROM_CLONE: dict[str, Any] = {"hyperparameters": {"learning_rate": "lin_0.001", "ent_coef": 0.01}}
WORDS = {"tokenizer": "word"}
BY_WORDS: dict[str, Any] = {
    "total_timesteps": 400_000,
    "hyperparameters": {
        "n_steps": 16,
        "batch_size": 2048,
        "gae_lambda": 0.7,
        "ent_coef": "lin_0.1",
    },
}
"""For guesses of one token and its <end>: shorter rollouts, and longer doubt about the first."""
LMRL = (-6.0, -4.12, -1.94)
"""Least, dataset's mean and greatest return of LMRL-Gym's Wordle (its Table 5)."""


def runs(folder: Path, seeds: int) -> list[Run]:
    """Every training of the recipe, seed by seed."""
    planned = []
    for seed in range(seeds):

        def run(
            method: str, env_id: str, train: Any, settings: Any = None, seed: int = seed, **kw: Any
        ) -> Run:
            name = f"{method.replace(' ', '-').replace(',', '')}-{env_id.split('/')[1]}-seed{seed}"
            return Run(method, env_id, seed, folder / name, train, settings, **kw)

        clone = run("BC of random-mixture", LARGE, train_clone)
        planned += [
            run("PPO from scratch, words as tokens", SMALL, train_ppo, BY_WORDS, env_kwargs=WORDS),
            clone,
            run("BC, then PPO", LARGE, train_ppo, {"init_from": clone.model}),
        ]
    return planned


def train_ppo(run: Run) -> None:
    """With the built-in hyperparameters; from a clone, more gently."""
    more = dict(run.settings or {})
    if "init_from" in more:
        more |= FROM_CLONE
    more |= {"env_kwargs": run.env_kwargs, "log_dir": run.folder, "seed": run.seed}
    agents.train(run.env_id, "ppo", progress_bar=False, resume=True, **more)


def train_clone(run: Run) -> None:
    """Maximum likelihood on games of the teacher."""
    games = dialgym.collect(run.env_id, TEACHER, GAMES, seed=run.seed)
    env = dialgym.sb3_vec_env(run.env_id, 1)
    model = agents.BC(
        "GPTPolicy", env, games, learning_rate=_falling, seed=run.seed, device="cpu", **CLONE
    )
    model.learn(STEPS)
    model.save(run.model)


def _falling(remaining: float) -> float:
    return 3e-3 * remaining


def their_lmrl_score(line: Line) -> str:
    """LMRL-Gym's normalisation with its own anchors."""
    return f"{lmrl_score(line.means.mean(), *LMRL):.1f}"


COLUMNS = {"LMRL": their_lmrl_score}
EPISODES = 1_024
NOTE = """\
Means over training seeds of 1,024 games a seed, tokens drawn as in training; in brackets 95 %
intervals (Student's t over the seeds' means). Score: 0 is the random policy, 100 the optimal one.
LMRL: the formula and the anchors of LMRL-Gym, whose list of words is another one; PPO from GPT-2
small has 84.2 there.
"""
