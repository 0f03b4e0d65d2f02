"""pass^k of a desk over the goals of its split."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

import dialgym
from benchmarks.recipes.job import AT_ONCE, EVALUATION_SEED, RecipeJob
from dialgym.experiments.statistics import pass_hat_k
from dialgym.rollouts.player import make_dialogue


def passes(job: RecipeJob, _: Any) -> dict[str, float]:
    """pass^1 to pass^4: each goal of the split is served `trials` times."""
    method, trials = job.method, job.recipe.options["trials"]
    goals = make_dialogue(method.environment, method.settings).task.splits[method.settings["split"]]
    result = dialgym.evaluate(
        method.policy or str(job.model),
        method.environment,
        len(goals) * trials,
        [EVALUATION_SEED + job.seed],
        method.settings,
        deterministic=method.actions == "greedy",
        num_envs=AT_ONCE,
        options=[*goals] * trials,
    )[method.environment]
    solved = np.array(result.solved, bool).reshape(trials, len(goals)).T
    return {f"pass^{k}": pass_hat_k(solved, k) for k in range(1, trials + 1)}


def on_train(job: RecipeJob) -> None:
    """Train by the method's algorithm with customers and policies of the split ``train``."""
    settings = {**job.method.settings, "split": "train"}
    replace(job, method=replace(job.method, settings=settings)).train()
