"""A negotiator's return beside that of the best response to its partner."""

from __future__ import annotations

from typing import Any

import dialgym
from benchmarks.recipes.job import EVALUATION_SEED, RecipeJob
from dialgym.experiments.shortfall import best_response


def beside_the_best(job: RecipeJob, part: Any) -> dict[str, float]:
    """Mean return of the best response in the same dialogues, and the share that is earned."""
    env_id, settings = job.method.environment, job.method.settings
    _, best = best_response(env_id, settings)
    seeds = [EVALUATION_SEED + job.seed]
    there = dialgym.evaluate(best, env_id, job.recipe.episodes, seeds, settings).mean_return
    return {"best": there, "share": part.mean_return / there}
