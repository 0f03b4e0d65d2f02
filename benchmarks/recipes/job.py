"""Jobs of a recipe: a method with a seed, trained and scored, or scored in other settings."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch

import dialgym
from agents.experiments.job import Job
from agents.experiments.run import Report, run_jobs
from agents.experiments.training_job import MODEL as MODEL_FILE
from agents.experiments.training_job import collect_once, plain, train_quietly
from benchmarks.recipes.recipe import MODEL, Method, OtherSettings, Recipe, slug
from benchmarks.recipes.tables import Line, lines
from dialgym.cli.common import check_failures
from dialgym.errors import unknown
from dialgym.experiments.result import Episodes
from dialgym.io.objects import load

EVALUATION_SEED, OTHERS_SEED = 7_000, 9_000
"""Added to that of a training: of the episodes that score it, and of those in other settings."""


@dataclass(frozen=True)
class RecipeJob(Job):
    """A method with a seed: trained and scored; or its model scored in other settings.

    Attributes:
        recipe, method, seed: what is done.
        root: the folder of the recipe's runs.
        under: the name of the other settings, if any.
    """

    recipe: Recipe
    method: Method
    seed: int
    root: Path
    under: str | None = None

    def __hash__(self) -> int:
        return hash(self.folder)

    def __str__(self) -> str:
        more = f", {self.under}" if self.under else ""
        return f"{self.method.name}, {self.method.environment}, seed {self.seed}{more}"

    @property
    def folder(self) -> Path:  # type: ignore[override]
        """That of the method and the seed."""
        home = self.root.resolve() / f"seed{self.seed}" / slug(self.method.name)
        return home / self.under if self.under else home

    @property
    def model(self) -> Path:
        """The file of the trained model."""
        return self.folder / MODEL_FILE

    @property
    def kind(self) -> str:
        """The method."""
        return self.method.name

    @cached_property
    def needs(self) -> tuple[Job, ...]:  # type: ignore[override]
        """Jobs whose models it reads."""
        if self.under:
            inner = self.recipe.others[self.under].settings
            return replace(self, under=None), *map(self.of, _models_in(inner))
        method = self.method
        stored = self.recipe.data[method.data].policy if method.data else ""
        named = [*method.needs, *_models_in([method.hyperparameters, stored])]
        return tuple(self.of(name) for name in [*([method.start] if method.start else []), *named])

    def of(self, name: str) -> RecipeJob:
        """The job of another method with the same seed; ``NAME+1`` is that of the next seed."""
        name, _, ahead = name.partition("+")
        return RecipeJob(
            self.recipe, self.recipe.methods[name], self.seed + int(ahead or 0), self.root
        )

    def description(self) -> dict[str, Any]:
        """Plain values that determine the figures."""
        recipe, method = self.recipe, self.method
        described = {
            "recipe": recipe.name,
            "method": asdict(method),
            "seed": self.seed,
            "data": asdict(recipe.data[method.data]) if method.data else None,
            "given": recipe.given,
            "options": recipe.options,
            "episodes": recipe.episodes,
        }
        if self.under:
            described["under"] = asdict(recipe.others[self.under])
        return plain(described)

    def figures(self) -> dict[str, Any]:
        """Train what is not trained, and play the dialogues that score it."""
        if self.under:
            return self._scored_under(self.recipe.others[self.under])
        method = self.method
        if method.policy is None and not self.model.is_file():
            load(method.train)(self) if method.train else self.train()
        if method.hidden:
            return {}
        part = self.play(self.recipe.episodes, EVALUATION_SEED, num_envs=256)
        torch.manual_seed(self.seed)
        metrics = {"turns": part.lengths, **part.metrics}
        return {
            "returns": part.returns[0].tolist(),
            "solved": part.solved[0].tolist(),
            "metrics": {name: rows[0].tolist() for name, rows in metrics.items()},
            "measured": load(method.measure)(self, part) if method.measure else {},
        }

    def _scored_under(self, other: OtherSettings) -> dict[str, Any]:
        settings = self._with_models(other.settings)
        part = replace(self, under=None).play(other.episodes, OTHERS_SEED, settings)
        return {"measured": {self.under: part.success}}

    def play(
        self, episodes: int, seed: int, settings: Mapping[str, Any] | None = None, **more: Any
    ) -> Episodes:
        """Play so many dialogues, with settings over those in which the method is scored."""
        method = self.method
        torch.manual_seed(self.seed)
        return dialgym.evaluate(
            method.policy or str(self.model),
            method.environment,
            episodes,
            [seed + self.seed],
            {**method.settings, **method.scored, **(settings or {})},
            deterministic=method.actions == "greedy",
            **more,
        )[method.environment]

    def train(self, **more: Any) -> None:
        """Train by the method's algorithm; what was killed goes on."""
        method = self.method
        given = {
            "hyperparameters": self._with_models(method.hyperparameters),
            "env_kwargs": {**method.settings, **method.training} or None,
            "data": self.dialogues(method.data) if method.data else None,
            "init_from": self.of(method.start).model if method.start else None,
            **method.fields,
            **more,
        }
        assert method.algorithm, f"{method.name}: expected an algorithm or a hook `train`"
        train_quietly(method.algorithm, method.environment, self.folder, self.seed, **given)

    def dialogues(self, name: str) -> Any:
        """Stored dialogues; the first job that needs them collects them."""
        stored = self.recipe.data[name]
        own = stored.seed is None
        return collect_once(
            self.root.resolve() / (f"seed{self.seed}" if own else "") / f"data-{slug(name)}",
            self.method.environment,
            self._with_models(stored.policy),
            stored.episodes,
            seed=self.seed if stored.seed is None else stored.seed,
            env_kwargs={**self.method.settings, **stored.settings},
            policy_kwargs=dict(stored.policy_kwargs),
        )

    def _with_models(self, value: Any) -> Any:
        """Values with the paths of the models that they name."""
        if isinstance(value, Mapping):
            return {key: self._with_models(one) for key, one in value.items()}
        if isinstance(value, str) and value.startswith(MODEL):
            return str(self.of(value.removeprefix(MODEL)).model)
        return value

    def length(self) -> int:
        """One, as trainings of recipes count different units."""
        return 1

    def summary(self, result: Mapping[str, Any]) -> str:
        """Mean return, or what else was found."""
        if "returns" in result:
            return f"return {np.mean(result['returns']):.3f}"
        return ", ".join(f"{k} {v:.3f}" for k, v in result.get("measured", {}).items()) or "trained"


def _models_in(value: Any) -> Iterator[str]:
    """The methods whose models some values name."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list):
        for one in value:
            yield from _models_in(one)
    elif isinstance(value, str) and value.startswith(MODEL):
        yield value.removeprefix(MODEL)


def jobs_of(
    recipe: Recipe, root: Path, seeds: int, only: Sequence[str] | None = None
) -> list[RecipeJob]:
    """Make the jobs of the rows of a recipe, seed by seed, and those in other settings.

    Args:
        recipe: of which.
        root: the folder of its runs.
        seeds: trainings of each method, from seed 0.
        only: patterns (`fnmatch`) of the rows; None for all.

    Raises:
        ValueError: a pattern matches none.
    """
    shown = [name for name, one in recipe.methods.items() if not one.hidden or one.also]
    for pattern in only or ():
        if not fnmatch.filter(shown, pattern):
            raise unknown("method", pattern, shown, "--only")
    chosen = [n for n in shown if only is None or any(fnmatch.fnmatch(n, p) for p in only)]
    jobs = []
    for seed, name in product(range(seeds), chosen):
        job = RecipeJob(recipe, recipe.methods[name], seed, root)
        jobs += [job, *(replace(job, under=other) for other in job.method.also)]
    return jobs


def perform(
    jobs: Sequence[RecipeJob], workers: int = 0, report: Report = lambda progress: None
) -> list[Line]:
    """Train and score what has not been; return the rows of the table.

    Raises:
        ValueError: a job has failed, or was done with other settings before.
    """
    results, failures = run_jobs(jobs, workers, None, report)
    check_failures(failures)
    return lines(jobs, results)
