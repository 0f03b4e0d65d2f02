"""Training runs of a recipe and their scores; what is on disk is not done again."""

from __future__ import annotations

import fnmatch
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch

import agents
import dialgym
from dialgym.errors import unknown
from dialgym.experiments import Episodes
from dialgym.io.files import read_json, write_text
from dialgym.io.locks import PATIENCE, locked

EVALUATION = "evaluation.json"
RECIPE = "recipe.json"
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
            Evaluations of an older form have none.
    """

    run: Run
    returns: np.ndarray
    solved: np.ndarray
    metrics: Mapping[str, np.ndarray] = field(default_factory=dict)


def train_by(algo: str, run: Run, **more: Any) -> None:
    """`agents.train` for a run, quietly and on the CPU; a run that was killed goes on."""
    agents.train(
        run.env_id,
        algo,
        seed=run.seed,
        log_dir=run.folder,
        device="cpu",
        progress_bar=False,
        resume=True,
        **more,
    )


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


def chosen(runs: Sequence[Run], patterns: Sequence[str]) -> list[Run]:
    """The runs whose methods match one of the patterns (`fnmatch`), in their order.

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


@contextmanager
def claimed(folder: Path, recipe: Mapping[str, Any]) -> Iterator[None]:
    """Hold the folder of a recipe's runs, of which no other process and no other recipe has any.

    Raises:
        FolderInUse: another process is writing there.
        ValueError: the runs there are those of another recipe.
    """
    with locked(folder, PATIENCE):
        file = folder / RECIPE
        if not file.is_file():
            write_text(file, json.dumps(recipe) + "\n")
        if (found := read_json(file, "the name of a recipe, as JSON")) != recipe:
            raise ValueError(
                f"{str(folder)!r} holds the runs of another recipe ({found}, now {recipe}). Give "
                "another folder."
            )
        yield


def perform(runs: Sequence[Run], episodes: int, jobs: int = 1) -> list[Score]:
    """Train and score what has not been; a run may build on one that stands before it.

    Args:
        runs: in an order in which each finds what it needs.
        episodes: of an evaluation.
        jobs: processes, one thread each; runs of one seed stay together in order.
    """
    seeds = sorted({run.seed for run in runs})
    chains = [[run for run in runs if run.seed == seed] for seed in seeds]
    work = [(chain, episodes) for chain in chains]
    if jobs == 1:
        scored = [_chain(*each) for each in work]
    else:
        with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
            scored = list(pool.map(_chain, *zip(*work)))
    by_folder = {score.run.folder: score for scores in scored for score in scores}
    return [by_folder[run.folder] for run in runs]


def _chain(runs: Iterable[Run], episodes: int) -> list[Score]:
    torch.set_num_threads(1)
    return [_score(run, episodes) for run in runs]


def _score(run: Run, episodes: int) -> Score:
    with locked(run.folder, PATIENCE):
        return _score_alone(run, episodes)


def _score_alone(run: Run, episodes: int) -> Score:
    if run.train and not run.model.is_file():
        print(f"{run.method}, {run.env_id}, seed {run.seed}: training", flush=True)
        run.train(run)
    kept = run.folder / EVALUATION
    found = read_json(kept, "an evaluation, as JSON") if kept.is_file() else {}
    if found.get("episodes") != episodes:
        torch.manual_seed(run.seed)
        played = dialgym.evaluate(
            run.scripted or str(run.model),
            run.env_id,
            episodes,
            [EVALUATION_SEED + run.seed],
            run.env_kwargs,
            num_envs=256,
            deterministic=run.deterministic,
        )
        part = played[run.env_id]
        found = {
            "episodes": episodes,
            "returns": part.returns[0].tolist(),
            "solved": part.solved[0].tolist(),
            "metrics": {name: rows[0].tolist() for name, rows in _measured(part).items()},
        }
        write_text(kept, json.dumps(found) + "\n")
    metrics = {name: np.array(values) for name, values in found.get("metrics", {}).items()}
    score = Score(run, np.array(found["returns"]), np.array(found["solved"]), metrics)
    print(f"{run.method}, {run.env_id}, seed {run.seed}: {score.returns.mean():.3f}", flush=True)
    return score


def _measured(part: Episodes) -> dict[str, np.ndarray]:
    return {"turns": part.lengths, **part.metrics}
