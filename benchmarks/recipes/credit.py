"""Recipe: how learners credit turns, against what the turns were worth.

Six words of which five differ in a letter, one token each: only a guess that cannot be right tells
them apart, so that credit for it has to come from later turns. Each learner is stopped early, while
it still says different things; what it credits the turns of fresh games with stands beside their
true advantages under its own policy.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import agents
import dialgym
from agents.training.advantage_estimates import turn_estimates
from benchmarks.recipes.runs import Run, train_by
from benchmarks.recipes.tables import Line, with_interval
from dialgym.experiments.advantages import agreement, true_advantages
from dialgym.io.files import write_text

ENV = "dialgym/Wordle-Alike-v0"
WORDS = {"tokenizer": "word"}
TOKENS, GAMES, STEPS = 20_000, 2_000, 200
"""Tokens of learning by playing; games and gradient steps of learning from them."""
DIALOGUES, CONTINUATIONS = 32, 32
EPISODES = 1_000
CREDIT = "credit.json"


@dataclass(frozen=True)
class Method:
    """A row of the table.

    Attributes:
        name: what the table calls it.
        algo: of `agents.registry`.
        overrides: hyperparameters other than the built-in ones.
        anchors: its infos name situations.
    """

    name: str
    algo: str
    overrides: Mapping[str, Any] = field(default_factory=dict)
    anchors: bool = False

    @property
    def env_kwargs(self) -> dict[str, Any]:
        """Of the env that it learns in."""
        return {**WORDS, "anchors": True} if self.anchors else WORDS


PLAY = {"n_envs": 64, "batch_size": 512, "learning_rate": 0.001, "ent_coef": 0.01}
GROUPS = {**PLAY, "n_envs": 128, "n_steps": 24, "group_size": 16, "scale": False}
PPO = {**PLAY, "n_steps": 24, "gamma": 1.0, "gae_lambda": 0.95}
METHODS = (
    Method("PPO, tokens", "ppo", PPO),
    Method("PPO, turns", "ppo", {**PPO, "advantage_level": "turn"}),
    Method("GRPO, episodes", "grpo", GROUPS),
    Method("GRPO, turns", "grpo", {**GROUPS, "credit": "turn"}),
    Method("GRPO, situations", "grpo", {**GROUPS, "credit": "situation"}, anchors=True),
    Method("single-step RL", "single-step"),
    Method("ILQL", "ilql"),
)


def runs(folder: Path, seeds: int) -> list[Run]:
    """Every training of the recipe, seed by seed."""
    return [
        Run(
            method.name, ENV, seed, folder / method.name.replace(", ", "-") / f"seed{seed}",
            learn, method, method.env_kwargs,
        )
        for seed in range(seeds)
        for method in METHODS
    ]  # fmt: skip


def learn(run: Run) -> None:
    """Training, and the agreement of credit and worth."""
    method: Method = run.settings
    if method.algo in ("ppo", "grpo"):
        more: dict[str, Any] = {"total_timesteps": TOKENS, "env_kwargs": method.env_kwargs}
    else:
        data = dialgym.collect(ENV, "random", GAMES, run.seed, env_kwargs=WORDS)
        more = {"total_timesteps": STEPS, "data": data, "env_kwargs": WORDS}
    train_by(method.algo, run, hyperparameters=dict(method.overrides), **more)
    model = agents.load(run.model, device="cpu")
    turns = turn_estimates(model, ENV, DIALOGUES, run.seed, method.env_kwargs)
    worth = true_advantages(model, ENV, turns, CONTINUATIONS, run.seed, WORDS)
    found = agreement(turns, worth)
    figures = {name: part[0] for name, part in found._asdict().items()}
    figures |= {"turns": len(turns), "spread": float(np.sqrt(max(_variance(worth), 0.0)))}
    write_text(run.folder / CREDIT, json.dumps(figures) + "\n")


def _variance(worth: Any) -> float:
    """Of true advantages, without what their measurement adds."""
    return float(worth.advantages.var() - (worth.errors**2).mean())


def figure(name: str) -> Callable[[Line], str]:
    """A column: the mean over seeds of what `learn` wrote down, and its interval."""

    def column(line: Line) -> str:
        texts = [(run.folder / CREDIT).read_text("utf-8") for run in line.runs]
        return with_interval(np.array([json.loads(text)[name] for text in texts]), 2)

    return column


BASE = ("method", "seeds", "mean return")
COLUMNS = {
    "correlation": figure("correlation"),
    "bias": figure("bias"),
    "error": figure("error"),
    "deviation of the truth": figure("spread"),
}
NOTE = f"""\
After {TOKENS:,} tokens, or {STEPS} gradient steps on {GAMES:,} random games, tokens drawn. Credit
is the mean of a turn's advantages over its tokens, or the sum of Q - V; the truth is Q - V under
the same policy, of {CONTINUATIONS} continuations with the turn and as many without, secrets drawn
from the exact posterior. Correlation, mean difference and root mean square of the difference,
without what the measurement adds; in brackets 95 % intervals (Student's t over the seeds).
"""
