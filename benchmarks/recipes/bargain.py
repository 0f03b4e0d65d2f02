"""Negotiators: beside the best response, with clones of people, and with themselves."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

import dialgym
from agents import PlanningAgent
from agents.experiments.job import read_curve_rows
from benchmarks.recipes.job import EVALUATION_SEED, RecipeJob
from dialgym.experiments.result import Episodes
from dialgym.experiments.shortfall import best_response
from dialgym.rollouts.player import make_dialogue


def beside_the_best(job: RecipeJob, part: Any) -> dict[str, float]:
    """Mean return of the best response in the same dialogues, and the share that is earned."""
    env_id, settings = job.method.environment, job.method.settings
    _, best = best_response(env_id, settings)
    seeds = [EVALUATION_SEED + job.seed]
    there = dialgym.evaluate(best, env_id, job.recipe.episodes, seeds, settings).mean_return
    return {"best": there, "share": part.mean_return / there}


# With clones of people


def in_training_contexts(job: RecipeJob) -> None:
    """Learn in the contexts of people's training split, whatever it is scored in."""
    settings = {**job.method.settings, "contexts": "train"}
    replace(job, method=replace(job.method, settings=settings)).train()


def planner(job: RecipeJob) -> PlanningAgent:
    """The policy that plans by rollouts with the models that the method names."""
    return PlanningAgent(**job.filled(job.method.hyperparameters))


def deals(job: RecipeJob, part: Episodes) -> dict[str, float]:
    """Points of the other over all, those of both in deals, Pareto-optimal deals, utterances.

    Of no deals at all points and share are 0.
    """
    game = make_dialogue(job.method.environment, job.rules_settings).task.game  # type: ignore[attr-defined]
    agreed = part.metrics["agreed"][0] == 1
    own, other, pareto = (
        part.metrics[name][0][agreed].sum() / max(agreed.sum(), 1)
        for name in ("points", "other", "pareto")
    )
    share = agreed.mean()
    return {
        "other": game.most * other * share + game.apart * (1 - share),
        "where agreed": game.most * own,
        "other, agreed": game.most * other,
        "pareto": pareto,
        "utterances": part.lengths.mean(),
    }


# With themselves


def with_partners(job: RecipeJob, _: Any) -> dict[str, float]:
    """Points and agreed dialogues with each partner, and what was agreed while it learned.

    Partners are the recipe's, of which `scripted` are taken together too, and of what learned both
    parties itself. `first` and `last` are agreed dialogues in the first tenth of its training, and
    in the last.
    """
    policy = job.filled(job.method.policy or str(job.model))
    partners, scripted = job.recipe.options["partners"], job.recipe.options["scripted"]
    if job.method.algorithm == "madpl":
        partners = {"itself": policy, **partners}
    found: dict[str, float] = {}
    for name, partner in partners.items():
        part = job.scored(policy, {**job.method.settings, "simulator": partner})
        found |= {name: part.mean_return, f"{name}, agreed": part.success}
    for end in ("", ", agreed"):
        found[f"scripted{end}"] = float(np.mean([found[name + end] for name in scripted]))
    agreed = [float(row["success"]) for row in read_curve_rows(job.folder) if row["success"]]
    if agreed:
        tenth = -(-len(agreed) // 10)
        found |= {"first": float(np.mean(agreed[:tenth])), "last": float(np.mean(agreed[-tenth:]))}
    return found
