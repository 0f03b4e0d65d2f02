"""Negotiations over acts between scripted parties, to measure their speed."""

from collections.abc import Iterator
from types import MappingProxyType
from typing import Any

import dialgym
from benchmarks.environments.timing import Figure
from benchmarks.environments.workloads import Rate, Work

EPISODES = 2048
BAR = 10_000
GAMES: MappingProxyType[str, str] = MappingProxyType(
    {"items": "Bargain", "goods": "Bargain-Goods", "price": "Bargain-Price"}
)
"""The environment of each game."""


def negotiations(name: str, **settings: Any) -> Work:
    """Dialogues over acts, `fair` against the default negotiator, as `evaluate` plays them."""

    def play() -> int:
        dialgym.evaluate("fair", f"{name}-act-v0", EPISODES, [0], env_kwargs=settings)
        return EPISODES

    return play


def bargain_figures(measure: Rate) -> Iterator[Figure]:
    """Dialogues of each game, and of a user that learns."""
    for game, name in GAMES.items():
        yield Figure(f"bargaining over {game}", measure(negotiations(name)), "/s", BAR)
    yield Figure("  the user learns", measure(negotiations("Bargain", learner="user")), "/s", BAR)
