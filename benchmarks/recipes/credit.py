"""Agreement of what a learner credits turns with and what they were worth; tokens to play well."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np

import agents
from agents.experiments.job import read_curve_rows
from agents.training.advantage_estimates import turn_estimates
from benchmarks.recipes.job import RecipeJob
from dialgym.experiments.advantages import (
    Decision,
    TurnAdvantages,
    agreement,
    true_advantages,
)

FOR_CREDIT = ("anchors", "values")
"""Settings that credit is made of, and dialogues are not."""
GOOD = 0.9
"""Share of the way from the first dialogues to the best play."""
FIRST = 128
"""Dialogues that are the first: one rollout that cuts dialogues has the short ones alone."""
BEGUN = 256
"""Dialogues that are begun for the mean of what the best play can expect."""
SMOOTH = 1024
"""Dialogues of the mean that must come so far."""
LEAST = 8
"""Dialogues that must have a turn of a number, for figures of that number."""


def agreement_with_truth(job: RecipeJob, _: Any) -> dict[str, float]:
    """Agreement of the credit of fresh dialogues with their worth, early in training, as a whole
    and by the number of the turn; and the tokens after which play was good."""
    return {**credit_beside_truth(job, _), **_learning(job)}


def credit_beside_truth(job: RecipeJob, _: Any) -> dict[str, float]:
    """The first of both, of environments whose best play nobody knows."""
    env_id, options, settings = job.method.environment, job.recipe.options, job.method.settings
    kept = (job.folder / "checkpoints").glob("model_*_steps.zip")
    early = min(kept, key=lambda file: int(file.stem.split("_")[1]), default=job.model)
    model = agents.load(early, device="cpu")
    steps = options["n_steps"]
    turns = turn_estimates(model, env_id, options["dialogues"], job.seed, settings, steps)
    numbers = numbers_of(turns)
    chosen = np.random.default_rng(job.seed).permutation(len(turns))[: options["turns"]]
    turns, numbers = [turns[i] for i in sorted(chosen)], numbers[np.sort(chosen)]
    worth = true_advantages(model, env_id, turns, options["continuations"], job.seed, _plain(job))
    spread = max(worth.variance, 0.0) ** 0.5
    found = {**figures(turns, worth), "turns": len(turns), "spread": spread}
    for number in range(1, options["by turn"] + 1):
        rows = np.flatnonzero(numbers == number)
        if len({turns[i].episode for i in rows}) >= LEAST:
            part = TurnAdvantages(*(values[rows] for values in worth))
            some = figures([turns[i] for i in rows], part)
            found |= {f"{name} {number}": value for name, value in some.items()}
    return found


def _plain(job: RecipeJob) -> dict[str, Any]:
    """Settings of the environment without those that credit alone is made of."""
    return {name: v for name, v in job.method.settings.items() if name not in FOR_CREDIT}


def figures(turns: Sequence[Decision], worth: TurnAdvantages) -> dict[str, float]:
    """Correlation, bias and error (`dialgym.experiments.advantages.agreement`), but for one that
    cannot be told; correlation of ranks (Spearman), which no scale of a credit changes."""
    found = {name: part[0] for name, part in agreement(turns, worth)._asdict().items()}
    credit = np.array([turn.estimate for turn in turns])
    known = {name: value for name, value in found.items() if not np.isnan(value)}
    return {**known, "rank": rank_correlation(credit, worth.advantages)}


def rank_correlation(x: np.ndarray, y: np.ndarray) -> float:
    """Spearman's, of (m,) and (m,); equal numbers share their mean rank. 0 where all are equal."""
    a, b = (_ranks(values) for values in (x, y))
    deviation = a.std() * b.std()
    return float(((a - a.mean()) * (b - b.mean())).mean() / deviation) if deviation else 0.0


def _ranks(values: np.ndarray) -> np.ndarray:
    _, number, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (counts.cumsum() - (counts - 1) / 2)[number]


def numbers_of(turns: Sequence[Decision]) -> np.ndarray:
    """(m,) the number of each turn in its dialogue, from 1; turns of a dialogue are in order."""
    before = Counter[int]()
    numbers = []
    for turn in turns:
        before[turn.episode] += 1
        numbers.append(before[turn.episode])
    return np.array(numbers)


def _learning(job: RecipeJob) -> dict[str, float]:
    """Tokens after which play was good, all if it never was; whether it was; the best play."""
    curve = [row for row in read_curve_rows(job.folder) if float(row["episodes"])]
    env: Any = gym.make(job.method.environment, **_plain(job), values=True)
    best = float(np.mean([env.reset(seed=seed)[1]["value"] for seed in range(BEGUN)]))
    env.close()
    returns, counts, tokens = (
        np.array([float(row[name]) for row in curve])
        for name in ("mean_return", "episodes", "timesteps")
    )
    rollout = rollout_of_good_play(returns, counts, best)
    reached = float(tokens[-1 if rollout is None else rollout])
    return {"best": best, "tokens": reached, "reached": float(rollout is not None)}


def rollout_of_good_play(returns: np.ndarray, counts: np.ndarray, best: float) -> int | None:
    """The first rollout whose mean, with those before it, has come `GOOD` of the way to the best.

    Args:
        returns: (m,) mean returns of rollouts.
        counts: (m,) their dialogues.
        best: the return of the best play.
    """
    first = min(int(np.searchsorted(counts.cumsum(), FIRST)), len(counts) - 1)
    start = np.average(returns[: first + 1], weights=counts[: first + 1])
    means = trailing_means(returns, counts)[first:]
    good = np.flatnonzero(means >= start + GOOD * (best - start))
    return first + int(good[0]) if len(good) else None


def trailing_means(returns: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """(m,): the mean over each rollout and as many before as hold `SMOOTH` dialogues, or all.

    Args:
        returns: (m,) mean returns of rollouts.
        counts: (m,) their dialogues.
    """
    sums, so_far = (returns * counts).cumsum(), counts.cumsum()
    first = np.searchsorted(so_far, so_far - SMOOTH, side="right")
    before = np.where(first > 0, first - 1, 0)
    missing = first > 0
    total = sums - np.where(missing, sums[before], 0.0)
    means: np.ndarray = total / (so_far - np.where(missing, so_far[before], 0.0))
    return means
