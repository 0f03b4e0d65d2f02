"""Jobs of a recipe: a method with a seed, trained and scored; each writes a row."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

import torch

import dialgym
from agents.experiments import panel_jobs
from agents.experiments.job import RESULT, Job, timed
from agents.experiments.run import Report, run_jobs
from agents.experiments.training_job import (
    CLOCK,
    LONG,
    TrainingJob,
    collect_once,
    digest_of,
    note_training,
    plain,
    remove,
    train_quietly,
)
from agents.experiments.training_job import MODEL as MODEL_FILE
from agents.training.checkpoint import BEFORE
from agents.training.checkpoint import FILE as CHECKPOINT
from benchmarks.recipes.recipe import Method, Recipe, slug
from dialgym.cli.benchmark import ROWS
from dialgym.cli.common import check_failures
from dialgym.errors import unknown
from dialgym.experiments.panel import panel_named
from dialgym.experiments.result import Episodes
from dialgym.experiments.row import AS_NAMED, episode_columns, episode_means, model_hash
from dialgym.experiments.rules import rules_of
from dialgym.io.files import read_json
from dialgym.io.locks import locked
from dialgym.io.objects import load
from dialgym.rollouts.player import make_dialogue
from dialgym.trust import is_code
from dialgym.versions import hardware

FORM = "dialgym recipe row 1"
EVALUATION_SEED = 7_000
"""Added to that of a training: of the episodes that score it."""
AT_ONCE = 256
"""Dialogues at a time, on which draws depend."""
TRAINED_BY = ("environment", "settings", "algorithm", "hyperparameters", "fields", "train")
"""Fields of a method that its model depends on."""
MODEL_OF = "@"
"""Begins a value of a recipe that stands for the file of a method's model: ``@NAME``."""


@dataclass(frozen=True)
class RecipeJob(Job):
    """A method with a seed: trained and scored.

    Attributes:
        recipe, method, seed: what is done.
        root: the folder of the recipe's runs.
        rows: the folder of the rows of all recipes.
        device: that trainings are on, as of PyTorch.
    """

    recipe: Recipe
    method: Method
    seed: int
    root: Path
    rows: Path
    device: str = "cpu"

    def __hash__(self) -> int:
        return hash(self.folder)

    def __str__(self) -> str:
        return f"{self.method.name}, {self.method.environment}, seed {self.seed}"

    @property
    def folder(self) -> Path:  # type: ignore[override]
        """That of the method and the seed."""
        return self.root.resolve() / f"seed{self.seed}" / slug(self.method.name)

    @property
    def result(self) -> Path:
        """Its row; of a hidden method a file of the run."""
        if self.method.hidden:
            return self.folder / RESULT
        home = self.rows.resolve() / self.recipe.name / slug(self.method.name)
        return home / f"{self.method.environment.rpartition('/')[2]}-seed{self.seed}.json"

    @property
    def model(self) -> Path:
        """The file of the trained model."""
        return (self._of_panel.folder if self.method.learner else self.folder) / MODEL_FILE

    @cached_property
    def _of_panel(self) -> TrainingJob:
        """The job of the panel's learner."""
        name, _, learner = str(self.method.learner).partition("/")
        panel = panel_named(name)
        place = panel.environment(self.method.environment)
        return panel_jobs.jobs_of(panel, [learner], [place], [self.seed], ROWS)[0]

    @property
    def kind(self) -> str:
        """The method."""
        return self.method.name

    @cached_property
    def needs(self) -> tuple[Job, ...]:  # type: ignore[override]
        """Jobs whose models it reads."""
        start = [self.method.start] if self.method.start else []
        trained = [self._of_panel] if self.method.learner else []
        return (*trained, *(self.of(name) for name in [*start, *self.method.needs]))

    def of(self, name: str) -> RecipeJob:
        """The job of another method with the same seed; ``NAME+1`` is that of the next seed."""
        name, _, ahead = name.partition("+")
        seed = self.seed + int(ahead or 0)
        return replace(self, method=self.recipe.methods[name], seed=seed)

    def filled(self, value: Any) -> Any:
        """A value with the file of a method's model, of the same seed, for each ``@NAME``."""
        if isinstance(value, Mapping):
            return {name: self.filled(one) for name, one in value.items()}
        named = isinstance(value, str) and value.startswith(MODEL_OF)
        return str(self.of(value[len(MODEL_OF) :]).model) if named else value

    @property
    def rules_settings(self) -> dict[str, Any]:
        """Settings of the environment without those that name models."""
        settings = self.method.settings
        return {name: value for name, value in settings.items() if self.filled(value) == value}

    def description(self) -> dict[str, Any]:
        """Plain values that determine the figures."""
        recipe, method = self.recipe, self.method
        described = asdict(method)
        if method.learner is None:  # rows from before there was that field have none
            del described["learner"]
        return plain(
            {
                "form": FORM,
                "recipe": recipe.name,
                "method": described,
                "seed": self.seed,
                "data": asdict(recipe.data[method.data]) if method.data else None,
                "options": recipe.options,
                "count": recipe.episodes,
            }
        )

    def training(self) -> dict[str, Any]:
        """Plain values that its model depends on, those of the models that it reads among them."""
        described = self.description()
        method = {name: described["method"][name] for name in TRAINED_BY}
        needs = {str(job): job.training() for job in self.needs if isinstance(job, RecipeJob)}
        rest = {name: described[name] for name in ("seed", "data", "options")}
        return {**method, **rest, "needs": needs}

    def figures(self) -> dict[str, Any]:
        """Train what is not trained, and play the dialogues that score it."""
        method = self.method
        self._make_models_before()
        with timed(self.folder / CLOCK):
            self.make_model()
            if method.hidden:
                return {}
            part = self.play()
            torch.manual_seed(self.seed)
            measured = load(method.measure)(self, part) if method.measure else {}
        episodes = episode_columns(part)
        return {
            "episodes": episodes,
            "statistics": episode_means(episodes),
            "metrics": {n: [round(float(v), 6) for v in m[0]] for n, m in part.metrics.items()},
            "measured": {name: round(float(value), 6) for name, value in measured.items()},
            "hashes": self.hashes(),
            "cost": read_json(self.folder / CLOCK, "a cost"),
            "hardware": hardware(),
        }

    def make_model(self) -> None:
        """Train the model where there is none, as beside a row that came without it."""
        method = self.method
        if method.policy is not None:
            return
        if method.learner:
            self._of_panel.train()
            return
        with locked(self.folder, LONG):
            note_training(self.folder, self.training())
            self._make_models_before()
            if not self.model.is_file():
                load(method.train)(self) if method.train else self.train()

    def _make_models_before(self) -> None:
        for need in self.needs:
            if isinstance(need, RecipeJob):
                need.make_model()

    def hashes(self) -> dict[str, Any]:
        """Hash what the figures depend on: rules, model, stored dialogues."""
        method, settings = self.method, self.rules_settings
        task = make_dialogue(method.environment, settings).task
        found: dict[str, Any] = {
            "rules": rules_of(method.environment, settings)._asdict(),
            "source": task.stand_in or AS_NAMED,
        }
        if method.policy is None:
            found |= model_hash(self.model)
        elif method.needs:
            read = {name: self.of(name).model for name in method.needs}
            found["models"] = {name: model_hash(file) for name, file in read.items()}
        if method.data:
            found["data"] = digest_of(self.dialogues(method.data))
        return found

    def play(self) -> Episodes:
        """Play the dialogues that score it."""
        method = self.method
        torch.manual_seed(self.seed)
        policy = self.filled(method.policy or str(self.model))
        if isinstance(method.policy, str) and is_code(method.policy):
            policy = load(method.policy)(self)
        return self.scored(policy, method.settings)

    def scored(self, policy: Any, settings: Mapping[str, Any]) -> Episodes:
        """Let a policy play the dialogues that score it, with settings of the environment."""
        method = self.method
        return dialgym.evaluate(
            policy,
            method.environment,
            self.recipe.episodes,
            [EVALUATION_SEED + self.seed],
            self.filled(settings),
            deterministic=method.actions == "greedy",
            num_envs=AT_ONCE,
        )[method.environment]

    def train(self) -> None:
        """Train by the method's algorithm; what was killed goes on."""
        method = self.method
        assert method.algorithm, f"{method.name}: expected an algorithm or a hook `train`"
        train_quietly(
            method.algorithm,
            method.environment,
            self.folder,
            self.seed,
            hyperparameters=self.filled(method.hyperparameters),
            env_kwargs=self.filled(method.settings) or None,
            data=self.dialogues(method.data) if method.data else None,
            init_from=self.of(method.start).model if method.start else None,
            device=self.device,
            **method.fields,
        )

    def dialogues(self, name: str) -> Any:
        """Stored dialogues; the first job that needs them collects them."""
        stored = self.recipe.data[name]
        own = stored.seed is None
        return collect_once(
            self.root.resolve() / (f"seed{self.seed}" if own else "") / f"data-{slug(name)}",
            self.method.environment,
            stored.policy,
            stored.episodes,
            seed=self.seed if stored.seed is None else stored.seed,
            env_kwargs={**self.rules_settings, **stored.settings},
            policy_kwargs=dict(stored.policy_kwargs),
        )

    def clear(self) -> None:
        """Remove the checkpoints of its training."""
        for name in (CHECKPOINT, BEFORE):
            remove(self.folder / name)

    def length(self) -> int:
        """One, as trainings of recipes count different units."""
        return 1

    def summary(self, result: Mapping[str, Any]) -> str:
        """Mean return, if it was scored."""
        found = result.get("statistics")
        return f"return {found['return']:.3f}" if found else "trained"


def jobs_of(
    recipe: Recipe,
    root: Path,
    rows: Path,
    seeds: int | Sequence[int],
    only: Sequence[str] | None = None,
    device: str = "cpu",
) -> list[RecipeJob]:
    """Make the jobs of the lines of a recipe, seed by seed.

    Args:
        recipe: of which.
        root: the folder of its runs.
        rows: the folder of the rows of all recipes.
        seeds: of the trainings of each method; a number for as many, from seed 0.
        only: patterns (`fnmatch`) of the lines; None for all.
        device: that trainings are on.

    Raises:
        ValueError: a pattern matches none.
    """
    shown = [name for name, one in recipe.methods.items() if not one.hidden]
    for pattern in only or ():
        if not fnmatch.filter(shown, pattern):
            raise unknown("method", pattern, shown, "--only")
    chosen = [n for n in shown if only is None or any(fnmatch.fnmatch(n, p) for p in only)]
    return [
        RecipeJob(recipe, recipe.methods[name], seed, root, rows, device)
        for seed, name in product(range(seeds) if isinstance(seeds, int) else seeds, chosen)
    ]


def perform(
    jobs: Sequence[RecipeJob], workers: int = 0, report: Report = lambda progress: None
) -> dict[RecipeJob, dict[str, Any]]:
    """Train and score what has no row; return the rows of all, by job.

    Raises:
        ValueError: a job has failed, or was done with other settings before.
    """
    results, failures = run_jobs(jobs, workers, None, report)
    check_failures(failures)
    return {job: results[job] for job in jobs}
