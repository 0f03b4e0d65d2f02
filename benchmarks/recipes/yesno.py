"""Models that speak greedily, and answers that are just yes or no."""

from __future__ import annotations

import shutil

from benchmarks.recipes.job import RecipeJob
from dialgym.experiments.result import Episodes


def copy_model(job: RecipeJob) -> None:
    """The model that the method starts with, which is scored by other actions."""
    job.folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(job.of(job.method.start or "").model, job.model)


def yes_no(job: RecipeJob, part: Episodes) -> dict[str, float]:
    """Answers of a dialogue that were just yes or no, on average."""
    return {"yes or no": float((part.metrics["yes/no answers"] * part.lengths).mean())}
