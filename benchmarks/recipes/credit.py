"""Agreement of what a learner credits turns with and what they were worth."""

from __future__ import annotations

from typing import Any

import numpy as np

import agents
from agents.training.advantage_estimates import turn_estimates
from benchmarks.recipes.job import RecipeJob
from dialgym.experiments.advantages import agreement, true_advantages


def agreement_with_truth(job: RecipeJob, _: Any) -> dict[str, float]:
    """Correlation, bias and error of the credit of fresh dialogues; deviation of their worth."""
    env_id, options, settings = job.method.environment, job.recipe.options, job.method.settings
    plain = {name: value for name, value in settings.items() if name != "anchors"}
    model = agents.load(job.model, device="cpu")
    turns = turn_estimates(model, env_id, options["dialogues"], job.seed, settings)
    worth = true_advantages(model, env_id, turns, options["continuations"], job.seed, plain)
    found = {name: part[0] for name, part in agreement(turns, worth)._asdict().items()}
    # of true advantages, without what their measurement adds
    variance = float(worth.advantages.var() - (worth.errors**2).mean())
    return {**found, "turns": len(turns), "spread": float(np.sqrt(max(variance, 0.0)))}
