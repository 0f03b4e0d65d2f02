"""The options of reset: which goal a dialogue is about."""

from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any

import numpy as np

from dialgym.errors import unknown
from dialgym.tasks.multiwoz.data import World
from dialgym.tasks.multiwoz.goal_form import parse_goal
from dialgym.tasks.multiwoz.goal_sets import goal_set
from dialgym.tasks.multiwoz.ontology import DOMAINS
from dialgym.tasks.multiwoz.types import MultiWOZGoal

DRAWN = "drawn"
GOALS = (DRAWN, "train", "test")
"""Goals drawn from the goal model, or those of a frozen set."""
DRAWS = 100
"""Most draws of a goal that keeps all domains: a train may be dropped."""


def choose_goal(
    world: World, goals: str, options: Mapping[str, Any], rng: np.random.Generator
) -> MultiWOZGoal:
    """The goal that the options give or choose; else one of `goals` at random.

    Raises:
        ValueError: an option is of another form, or there is no such goal.
    """
    given, domains, number = (options.get(name) for name in ("goal", "domains", "number"))
    if sum(option is not None for option in (given, domains, number)) > 1:
        raise ValueError(
            "options of MultiWOZ: expected one of 'goal', 'domains' and 'number'; got "
            f"{', '.join(sorted(options))}. Each of them chooses the goal."
        )
    if given is not None:
        return parse_goal(given, world.database)
    frozen: Sequence[MultiWOZGoal] = () if goals == DRAWN else goal_set(world, goals)
    if number is not None:
        return frozen[_checked_number(number, len(frozen))]
    if domains is not None:
        return _about(world, frozen, _checked_domains(domains), rng)
    return frozen[int(rng.random() * len(frozen))] if frozen else world.draw_goal(rng)


def _about(
    world: World, frozen: Sequence[MultiWOZGoal], domains: tuple[str, ...], rng: np.random.Generator
) -> MultiWOZGoal:
    """A goal about these domains in this order."""
    if frozen:
        fitting = [goal for goal in frozen if tuple(goal.domains) == domains]
        if fitting:
            return fitting[int(rng.random() * len(fitting))]
    else:
        for _ in range(DRAWS):
            goal = world.draw_goal(rng, domains)
            if tuple(goal.domains) == domains:
                return goal
    where = "one of the frozen goals" if frozen else "a goal"
    raise ValueError(
        f"option 'domains' of MultiWOZ: expected domains, in an order, that {where} of "
        f"{world.source} has; got {list(domains)}. Try another order, or give the option 'goal'."
    )


def _checked_domains(domains: Any) -> tuple[str, ...]:
    if not isinstance(domains, Sequence) or isinstance(domains, str) or not domains:
        raise ValueError(
            "option 'domains' of MultiWOZ: expected a sequence of domains, such as "
            f"['hotel', 'train']; got {domains!r}."
        )
    for domain in domains:
        if domain not in DOMAINS:
            raise unknown("domain", domain, DOMAINS, "option 'domains' of MultiWOZ")
    return tuple(domains)


def _checked_number(number: Any, count: int) -> int:
    whole = isinstance(number, Integral) and not isinstance(number, bool)
    if whole and 0 <= number < count:
        return int(number)
    expected = f"a whole number from 0 to {count - 1}" if count else "goals='train' or 'test'"
    raise ValueError(f"option 'number' of MultiWOZ: expected {expected}; got {number!r}.")
