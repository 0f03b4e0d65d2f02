"""Training runs of a recipe and their scores, as jobs of one experiment."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

import dialgym
from agents.experiments.job import Job
from agents.experiments.run import Report, run_jobs
from agents.experiments.training_job import plain, train_quietly
from dialgym.cli.common import check_failures
from dialgym.errors import unknown
from dialgym.versions import command_line

EVALUATION_SEED = 7_000


@dataclass(frozen=True)
class Run:
    """One training of one method with one seed.

    Attributes:
        method: what the table calls it.
        env_id: where it learns and is scored.
        seed: of everything in it.
        folder: which gets `model.zip`.
        train: called with the run; leaves the model. A function of a module, to be sent to a
            process of its own; None where there is nothing to train.
        settings: further arguments of `train`.
        env_kwargs: settings of the env.
        deterministic: it is scored saying the likeliest token; else tokens are drawn.
        scripted: the registered name of a policy that is scored in place of a trained model.
    """

    method: str
    env_id: str
    seed: int
    folder: Path
    train: Callable[[Run], None] | None
    settings: Any = None
    env_kwargs: Any = None
    deterministic: bool = False
    scripted: str | None = None

    @property
    def model(self) -> Path:
        """The file of the trained model."""
        return self.folder / "model.zip"


@dataclass(frozen=True)
class Score:
    """Of the episodes of a run's model, (episodes,) each.

    Attributes:
        run: whose.
        returns, solved: and which were successes.
        metrics: by name what the task measures of each (`Task.metrics`), and the learner's `turns`.
    """

    run: Run
    returns: np.ndarray
    solved: np.ndarray
    metrics: Mapping[str, np.ndarray] = field(default_factory=dict)


def train_by(algo: str, run: Run, **more: Any) -> None:
    """Train a run quietly and on the CPU; a run that was killed goes on."""
    train_quietly(algo, run.env_id, run.folder, run.seed, **more)


NETWORK = {"preset": "nano", "n_head": 4}
"""Of clones of scripted policies."""


def imitate(
    run: Run,
    policy: str,
    games: int,
    steps: int,
    network: Mapping[str, Any],
    env_kwargs: Mapping[str, Any] | None = None,
) -> None:
    """Clone a scripted policy from so many of its dialogues, in so many gradient steps."""
    data = dialgym.collect(run.env_id, policy, games, run.seed, env_kwargs=env_kwargs)
    overrides = {"policy_kwargs": dict(network), "batch_size": 32}
    train_by("bc", run, data=data, total_timesteps=steps, hyperparameters=overrides)


def select(runs: Sequence[Run], patterns: Sequence[str]) -> list[Run]:
    """Return the runs whose methods match one of the patterns (`fnmatch`), in their order.

    What they build on has to be among them, or to have been run.

    Raises:
        ValueError: a pattern matches none.
    """
    methods = list(dict.fromkeys(run.method for run in runs))
    found = {pattern: fnmatch.filter(methods, pattern) for pattern in patterns}
    for pattern, matching in found.items():
        if not matching:
            raise unknown("method", pattern, methods, "--only")
    return [run for run in runs if any(run.method in matching for matching in found.values())]


# Jobs


@dataclass(frozen=True)
class RunJob(Job):
    """A run as a job: trained and scored.

    Attributes:
        run: what is done.
        episodes: of its evaluation.
        needs: the run of its seed that stands before it, on which it may build.
    """

    run: Run
    episodes: int
    needs: tuple[RunJob, ...] = ()

    def __hash__(self) -> int:
        return hash(self.run.folder)

    def __str__(self) -> str:
        return f"{self.run.method}, {self.run.env_id}, seed {self.run.seed}"

    @property
    def folder(self) -> Path:  # type: ignore[override]
        """That of the run."""
        return self.run.folder.resolve()

    @property
    def command(self) -> str:
        """The command that was given."""
        return command_line()

    @property
    def kind(self) -> str:
        """The method."""
        return self.run.method

    def description(self) -> dict[str, Any]:
        """Plain values that determine the figures."""
        run = self.run
        return plain(
            {
                "method": run.method,
                "id": run.env_id,
                "seed": run.seed,
                "trained_by": run.train and f"{run.train.__module__}:{run.train.__qualname__}",
                "settings": run.settings,
                "env_kwargs": run.env_kwargs,
                "deterministic": run.deterministic,
                "scripted": run.scripted,
                "episodes": self.episodes,
            }
        )

    def figures(self) -> dict[str, Any]:
        """Train what is not trained, and play the dialogues that score it."""
        run = self.run
        if run.train and not run.model.is_file():
            run.train(run)
        torch.manual_seed(run.seed)
        part = dialgym.evaluate(
            run.scripted or str(run.model),
            run.env_id,
            self.episodes,
            [EVALUATION_SEED + run.seed],
            run.env_kwargs,
            num_envs=256,
            deterministic=run.deterministic,
        )[run.env_id]
        metrics = {"turns": part.lengths, **part.metrics}
        return {
            "returns": part.returns[0].tolist(),
            "solved": part.solved[0].tolist(),
            "metrics": {name: rows[0].tolist() for name, rows in metrics.items()},
        }

    def length(self) -> int:
        """One, as trainings of recipes count different units."""
        return 1

    def summary(self, result: Mapping[str, Any]) -> str:
        """Mean return."""
        return f"return {np.mean(result['returns']):.3f}"


def jobs_of(runs: Sequence[Run], episodes: int) -> list[RunJob]:
    """Make the jobs of runs, those of a seed one after the other."""
    jobs: list[RunJob] = []
    last: dict[int, RunJob] = {}
    for run in runs:
        before = (last[run.seed],) if run.seed in last else ()
        last[run.seed] = RunJob(run, episodes, before)
        jobs.append(last[run.seed])
    return jobs


def perform(
    runs: Sequence[Run], episodes: int, workers: int = 0, report: Report = lambda progress: None
) -> list[Score]:
    """Train and score what has not been; a run may build on one of its seed that stands before it.

    Args:
        runs: in an order in which each finds what it needs.
        episodes: of an evaluation.
        workers, report: as of `run_jobs`.

    Raises:
        ValueError: a run has failed, or was done with other settings before.
    """
    jobs = jobs_of(runs, episodes)
    results, failures = run_jobs(jobs, workers, None, report)
    check_failures(failures)
    return [_score(job.run, results[job]) for job in jobs]


def _score(run: Run, result: Mapping[str, Any]) -> Score:
    metrics = {name: np.array(values) for name, values in result["metrics"].items()}
    return Score(run, np.array(result["returns"]), np.array(result["solved"]), metrics)
