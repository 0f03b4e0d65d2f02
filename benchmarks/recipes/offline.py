"""Several offline learners on the same stored games, each with several seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dialgym
from benchmarks.recipes.runs import Run, train_by

WORDS = {"tokenizer": "word"}
"""A guess is one token and its <end>."""


@dataclass(frozen=True)
class Games:
    """What is collected once for each seed.

    Attributes:
        env_id: where.
        policy: who plays, or what generates.
        episodes: how many.
        policy_kwargs: settings of the policy.
    """

    env_id: str
    policy: str
    episodes: int
    policy_kwargs: Mapping[str, Any] = field(default_factory=dict)

    def collect(self, seed: int, path: Path | None = None) -> Any:
        """The dataset; in the folder `path`, begun or gone on with."""
        return dialgym.collect(
            self.env_id,
            self.policy,
            self.episodes,
            seed,
            path=path,
            env_kwargs=WORDS,
            policy_kwargs=self.policy_kwargs,
        )


@dataclass(frozen=True)
class Method:
    """A row of the table.

    Attributes:
        name: what the table calls it.
        algo: a key of `agents.training.config.OFFLINE`.
        overrides: hyperparameters other than the built-in ones.
        greedy: it says the likeliest token, else draws.
    """

    name: str
    algo: str
    overrides: Mapping[str, Any] = field(default_factory=dict)
    greedy: bool = True


def plan(games: Games, methods: Sequence[Method], folder: Path, seeds: int) -> list[Run]:
    """Every training of the methods, seed by seed, each seed with games of its own."""
    return [
        Run(
            method.name,
            games.env_id,
            seed,
            folder / f"{method.name.replace(' ', '-').replace('%', '')}-seed{seed}",
            train,
            (games, method),
            env_kwargs=WORDS,
            deterministic=method.greedy,
        )
        for seed in range(seeds)
        for method in methods
    ]


def train(run: Run) -> None:
    """By `agents.train`, on the seed's games, which the first of its methods collects."""
    games, method = run.settings
    data = run.folder.parent / f"games-seed{run.seed}"
    games.collect(run.seed, data)
    train_by(method.algo, run, overrides=method.overrides, data=data)
