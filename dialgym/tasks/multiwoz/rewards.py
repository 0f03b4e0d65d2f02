"""Rewards of the system: by default as ConvLab-3 has them, and as ConvLab-2 had them."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from dialgym.tasks.multiwoz.agenda import MultiWOZUserState
from dialgym.tasks.multiwoz.evaluator import Evaluator, Record
from dialgym.tasks.multiwoz.ontology import DOMAINS
from dialgym.tasks.multiwoz.types import MultiWOZGoal

COMPONENTS = ("turn", "domain", "success")
Components = Mapping[str, float]
Reward = Callable[[Evaluator, MultiWOZGoal, MultiWOZUserState, Record, bool, bool], Components]
"""(evaluator, goal, user, record, whether the dialogue has ended, strict) -> parts of the reward.

Given once the user has answered an utterance of the system. May change `record.rewarded`.
"""
SUCCESS, FAILURE, TURN, DOMAIN = 80.0, -40.0, -1.0, 5.0
CONVLAB2_SUCCESS = 40.0


def default(
    evaluator: Evaluator,
    goal: MultiWOZGoal,
    user: MultiWOZUserState,
    record: Record,
    ended: bool,
    strict: bool,
) -> Components:
    """-1 for each turn, +5 once for each domain that is done, +80 or -40 in the end."""
    done = [
        domain
        for domain in goal.domains
        if domain not in record.rewarded and evaluator.domain_success(goal, record, domain)
    ]
    record.rewarded = record.rewarded.union(done)
    success = 0.0
    if ended:
        success = SUCCESS if evaluator.success(goal, user, record, strict) else FAILURE
    return {"turn": TURN, "domain": DOMAIN * len(done), "success": success}


def convlab2(
    evaluator: Evaluator,
    goal: MultiWOZGoal,
    user: MultiWOZUserState,
    record: Record,
    ended: bool,
    strict: bool,
) -> Components:
    """+40 at each turn at which all is done; else +5 if the domain talked about is; else -1.

    Finished domains pay at every turn at which they are talked about, so it pays to stay in them.
    """
    success = evaluator.success(goal, user, record, strict)
    domain = not success and evaluator.domain_success(goal, record, record.domain)
    return {
        "turn": 0.0 if success or domain else TURN,
        "domain": DOMAIN if domain else 0.0,
        "success": CONVLAB2_SUCCESS if success else 0.0,
    }


REWARDS: Mapping[str, Reward] = MappingProxyType({"default": default, "convlab2": convlab2})


def bounds(reward: str, turns: int) -> tuple[float, float]:
    """The lowest and the highest return of a dialogue of at most `turns` turns of the system."""
    if reward == "default":
        return TURN * turns + FAILURE, TURN + DOMAIN * len(DOMAINS) + SUCCESS
    return TURN * turns, CONVLAB2_SUCCESS * turns
