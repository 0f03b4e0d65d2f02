"""A language model before it has learned anything, and what learning gains over cloning."""

from __future__ import annotations

import agents
import dialgym
from benchmarks.recipes.job import RecipeJob
from dialgym.experiments.result import Episodes
from dialgym.io.files import read_json


def untrained(job: RecipeJob) -> None:
    """The pretrained model as a policy within the constraint, as it comes."""
    method = job.method
    env = dialgym.sb3_vec_env(method.environment, 1, **method.settings)
    kwargs = dict(method.hyperparameters["policy_kwargs"])
    agents.BC("GPTPolicy", env, policy_kwargs=kwargs, seed=job.seed).save(job.model)


def gain(job: RecipeJob, part: Episodes) -> dict[str, float]:
    """Mean return above that of the model it began with, in the same dialogues."""
    before = read_json(job.of(job.method.start or "").result, "a row")
    return {"gain": part.mean_return - before["statistics"]["return"]}
