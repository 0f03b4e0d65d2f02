"""Training runs of a recipe and their scores; what is on disk is not done again."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch

import agents
import dialgym
from dialgym.files import write_text

EVALUATION = "evaluation.json"
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
            process of its own.
        settings: further arguments of `train`.
        env_kwargs: settings of the env.
        deterministic: it is scored saying the likeliest token; else tokens are drawn.
    """

    method: str
    env_id: str
    seed: int
    folder: Path
    train: Callable[[Run], None]
    settings: Any = None
    env_kwargs: Any = None
    deterministic: bool = False

    @property
    def model(self) -> Path:
        """The file of the trained model."""
        return self.folder / "model.zip"


@dataclass(frozen=True)
class Score:
    """Returns (episodes,) of a run's model, and which episodes were successes."""

    run: Run
    returns: np.ndarray
    solved: np.ndarray


def train_by(algo: str, run: Run, **more: Any) -> None:
    """`agents.train` for a run, quietly and on the CPU; a run that was killed goes on."""
    agents.train(
        algo,
        run.env_id,
        seed=run.seed,
        log_dir=run.folder,
        device="cpu",
        progress_bar=False,
        resume=True,
        **more,
    )


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
    if not run.model.is_file():
        print(f"{run.method}, {run.env_id}, seed {run.seed}: training", flush=True)
        run.folder.mkdir(parents=True, exist_ok=True)
        run.train(run)
    kept = run.folder / EVALUATION
    found = json.loads(kept.read_text("utf-8")) if kept.is_file() else {}
    if found.get("episodes") != episodes:
        torch.manual_seed(run.seed)
        played = dialgym.evaluate(
            str(run.model),
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
        }
        write_text(kept, json.dumps(found) + "\n")
    score = Score(run, np.array(found["returns"]), np.array(found["solved"]))
    print(f"{run.method}, {run.env_id}, seed {run.seed}: {score.returns.mean():.3f}", flush=True)
    return score
