"""Ways of speaking by what a model has learned, and answers that are just yes or no."""

from __future__ import annotations

from dataclasses import replace

import agents
from benchmarks.recipes.job import RecipeJob
from dialgym.experiments.result import Episodes


def speak_otherwise(job: RecipeJob) -> None:
    """The model that the method starts with, with changes of its policy's decoding."""
    model = agents.load(job.of(job.method.start or "").model, device="cpu")
    if job.method.hyperparameters:
        model.policy.decoding = replace(model.policy.decoding, **job.method.hyperparameters)
    agents.save(model, job.model)


def yes_no(job: RecipeJob, part: Episodes) -> dict[str, float]:
    """Answers of a dialogue that were just yes or no, on average."""
    return {"yes or no": float((part.metrics["yes/no answers"] * part.lengths).mean())}
