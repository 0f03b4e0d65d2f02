"""Ranks of Q values on branches of an expert's games."""

from __future__ import annotations

from typing import Any

import agents
from agents.offline import rank_accuracy as metrics
from benchmarks.recipes.job import RecipeJob

KINDS = ("repeat", "suboptimal")
"""Branches that repeat the opening, and those that differ in it."""


def rank_accuracy(job: RecipeJob, _: Any) -> dict[str, float]:
    """Share of other games in which Q of the expert's words is above that of a branch, by kind."""
    games, model = job.dialogues("pairs"), agents.load(job.model, device="cpu")
    return {kind: metrics.rank_accuracy(model, games, kind).accuracy for kind in KINDS}
