"""A language model before it has learned anything."""

from __future__ import annotations

import agents
import dialgym
from benchmarks.recipes.job import RecipeJob


def untrained(job: RecipeJob) -> None:
    """The pretrained model as a policy within the constraint, as it comes."""
    method = job.method
    env = dialgym.sb3_vec_env(method.environment, 1, **method.settings)
    kwargs = dict(method.hyperparameters["policy_kwargs"])
    agents.BC("GPTPolicy", env, policy_kwargs=kwargs, seed=job.seed).save(job.model)
