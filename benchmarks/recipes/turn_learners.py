"""Returns of the likeliest tokens beside those of drawn ones."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.recipes.job import RecipeJob
from dialgym.experiments.result import Episodes


def greedy_return(job: RecipeJob, _: Episodes) -> dict[str, float]:
    """Mean return of the same dialogues with the likeliest token each time."""
    greedy = replace(job, method=replace(job.method, actions="greedy"))
    return {"greedy": greedy.play().mean_return}
