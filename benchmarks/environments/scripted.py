"""Dialogues over acts between scripted parties, to measure their speed."""

from collections.abc import Iterator
from itertools import count
from types import MappingProxyType
from typing import Any

import dialgym
from benchmarks.environments.timing import Figure
from benchmarks.environments.workloads import Rate, Work
from dialgym.tasks.service_desk.desk_goals import SIZES, goal_of

EPISODES = 2048
BARGAINS, DESKS = 10_000, 3_000
"""What the project asks of negotiations and of service desks."""
GAMES: MappingProxyType[str, str] = MappingProxyType(
    {"items": "Bargain", "goods": "Bargain-Goods", "price": "Bargain-Price"}
)
"""The environment of each game."""
DOMAINS: MappingProxyType[str, str] = MappingProxyType(
    {"shop": "ServiceDesk", "phone": "ServiceDesk-Phone"}
)
"""The environment of each domain of service desks."""


def scripted(policy: str, name: str, **settings: Any) -> Work:
    """Dialogues over acts of a policy with the default other party, as `evaluate` plays them."""

    def play() -> int:
        dialgym.evaluate(policy, f"{name}-act-v0", EPISODES, [0], env_kwargs=settings)
        return EPISODES

    return play


def bargain_figures(measure: Rate) -> Iterator[Figure]:
    """Dialogues of each game, and of a user that learns."""
    for game, name in GAMES.items():
        play = scripted("fair", name)
        yield Figure(f"bargaining over {game}", measure(play), "/s", BARGAINS)
    play = scripted("fair", "Bargain", learner="user")
    yield Figure("  the user learns", measure(play), "/s", BARGAINS)
    play = scripted("dealer", "CarDealer")
    yield Figure("a car dealer", measure(play), "/s", BARGAINS)


def desk_figures(measure: Rate) -> Iterator[Figure]:
    """Dialogues of each domain, of goals that are at hand; and goals that are made."""
    for domain, name in DOMAINS.items():
        for policy in ("handcrafted", "careful"):
            play = scripted(policy, name)
            yield Figure(f"service desk, {domain}: {policy}", measure(play), "/s", DESKS)
        yield Figure(f"  goals of the {domain}, made", measure(_goals(domain)), "/s")


def _goals(domain: str) -> Work:
    """Goals of a split, none of them twice until all have been made."""
    numbers = count()

    def make() -> int:
        for _ in range(EPISODES):
            goal_of.__wrapped__(domain, "train", next(numbers) % SIZES["train"])
        return EPISODES

    return make
