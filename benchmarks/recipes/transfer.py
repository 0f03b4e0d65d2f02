"""Policies of one domain in another."""

from __future__ import annotations

import agents
import dialgym
from agents.training.callbacks import StopAfterDialogues
from agents.training.hyperparameters import read_hyperparameters
from agents.training.prepare import UNBOUNDED
from benchmarks.recipes.job import RecipeJob


def carry_over(job: RecipeJob) -> None:
    """The model of the first domain as it is, or after so many dialogues in the second."""
    method = job.method
    rows = read_hyperparameters(method.algorithm or "", method.environment, kind="acts")["n_envs"]
    env = dialgym.sb3_vec_env(method.environment, rows, seed=job.seed)
    learned = agents.load(job.of(method.start or "").model, device="cpu")
    model = learned.transferred(env, **method.hyperparameters)
    if dialogues := method.fields.get("dialogues"):
        model.learn(UNBOUNDED, callback=StopAfterDialogues(dialogues, job.folder))
    agents.save(model, job.model)
