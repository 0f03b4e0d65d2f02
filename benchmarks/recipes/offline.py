"""Several offline learners on the same stored games, each with several seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import agents
import dialgym
from benchmarks.recipes.runs import Run, train_by

WORDS = {"tokenizer": "word"}
"""A guess is one token and its <end>."""


@dataclass(frozen=True)
class Games:
    """Games that are collected once for each seed.

    Attributes:
        env_id: where.
        policy: who plays, or what generates.
        episodes: how many.
        policy_kwargs: settings of the policy.
        env_kwargs: settings of the env.
    """

    env_id: str
    policy: str
    episodes: int
    policy_kwargs: Mapping[str, Any] = field(default_factory=dict)
    env_kwargs: Mapping[str, Any] = field(default_factory=WORDS.copy)

    def collect(self, seed: int, path: Path | None = None) -> Any:
        """The dataset; in the folder `path`, begun or gone on with."""
        return dialgym.collect(
            self.env_id,
            self.policy,
            self.episodes,
            seed,
            path=path,
            env_kwargs=self.env_kwargs,
            policy_kwargs=self.policy_kwargs,
        )


@dataclass(frozen=True)
class Method:
    """A row of the table.

    Attributes:
        name: what the table calls it.
        algo: a key of `agents.training.hyperparameters.OFFLINE`.
        overrides: hyperparameters other than the built-in ones.
        greedy: it says the likeliest token, else draws.
    """

    name: str
    algo: str
    overrides: Mapping[str, Any] = field(default_factory=dict)
    greedy: bool = True


@dataclass(frozen=True)
class Variant:
    """A row that speaks in another way by what a method has learned.

    Attributes:
        name: what the table calls it.
        of: the name of the method.
        decoding: changes of its policy's `decoding`.
        greedy: it says the likeliest token, else draws.
    """

    name: str
    of: str
    decoding: Mapping[str, Any] = field(default_factory=dict)
    greedy: bool = True


def plan(games: Games, methods: Sequence[Method | Variant], folder: Path, seeds: int) -> list[Run]:
    """Every training of the methods, seed by seed, each seed with games of its own."""
    return [
        Run(
            method.name,
            games.env_id,
            seed,
            place(folder, method.name, seed),
            train if isinstance(method, Method) else speak_otherwise,
            (games, method),
            games.env_kwargs,
            deterministic=method.greedy,
        )
        for seed in range(seeds)
        for method in methods
    ]


def place(folder: Path, method: str, seed: int) -> Path:
    """Folder of the run of a method and a seed."""
    return folder / f"{method.replace(' ', '-').replace('%', '').replace(',', '')}-seed{seed}"


def train(run: Run) -> None:
    """By `agents.train`, on the seed's games, which the first of its methods collects."""
    games, method = run.settings
    data = run.folder.parent / f"games-seed{run.seed}"
    games.collect(run.seed, data)
    train_by(method.algo, run, hyperparameters=method.overrides, data=data)


def speak_otherwise(run: Run) -> None:
    """The model of the method that a `Variant` is of, with the changes of its decoding."""
    variant: Variant = run.settings[1]
    learned = place(run.folder.parent, variant.of, run.seed) / run.model.name
    model = agents.load(learned, device="cpu")
    if variant.decoding:
        model.policy.decoding = replace(model.policy.decoding, **variant.decoding)
    agents.save(model, run.model)
