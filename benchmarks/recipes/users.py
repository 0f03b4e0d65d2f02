"""Policies that learn with one user, and are scored with all of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import dialgym
from benchmarks.recipes.job import EVALUATION_SEED, RecipeJob
from dialgym.experiments.user_audit import audit_user
from dialgym.tasks.base import Outcome
from dialgym.tasks.slot_filling import SlotFilling
from dialgym.tasks.slot_filling.types import SlotFillingState

HONEST, LEARNED = "handcrafted", "learned"
PAID = "benchmarks.recipes.users:PaidByUser-act-v0"


class PaidByUser(SlotFilling):
    """Slot filling in which a dialogue succeeds if the user says goodbye, whatever it was told."""

    def _end(self, state: SlotFillingState, last: str) -> Outcome:
        return self.rewards.at_end(last, last == "closing")


dialgym.register(
    PAID.partition(":")[2].replace("-act", ""),
    "benchmarks.recipes.users:PaidByUser",
    {"domain": "CamRestaurants", "env": 1},
    views=["act"],
)


def settings_of(job: RecipeJob, user: str) -> dict[str, Any]:
    """Settings of the environment with a user of the recipe's."""
    if user == LEARNED:
        return {"simulator": str(job.of("learned user").model)}
    return dict(job.recipe.options["users"][user])


def learn(job: RecipeJob) -> None:
    """Learn with one user; what it is paid by says the method."""
    given = dict(job.method.hyperparameters)
    user, paid_by = given.pop("user"), given.pop("paid_by", "rules")
    where = PAID if paid_by == "user" else job.method.environment
    settings = settings_of(job, user)
    method = replace(job.method, environment=where, settings=settings, hyperparameters=given)
    replace(job, method=method).train()


def with_each(job: RecipeJob, _: Any) -> Mapping[str, float]:
    """Success by the rules with each user, and whether its own user is gamed."""
    env_id, model = job.method.environment, str(job.model)
    seeds = [EVALUATION_SEED + job.seed]
    users = {name: settings_of(job, name) for name in (*job.recipe.options["users"], LEARNED)}
    found = {
        name: dialgym.evaluate(model, env_id, job.recipe.episodes, seeds, settings).success
        for name, settings in users.items()
    }
    own = users[job.method.hyperparameters["user"]]
    user = own.pop("simulator", "agenda")
    audit = audit_user(
        env_id, user, None, [HONEST, model], job.recipe.options["goals"], seeds[0], own
    )
    return {**found, "games": float(bool(audit.gaming))}
