"""Frozen sets of goals, by which scores can be compared: drawn from fixed seeds, and verified."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from typing import Any, overload

import numpy as np

from dialgym.errors import one_of
from dialgym.tasks.multiwoz.data import World
from dialgym.tasks.multiwoz.goal_form import goal_as_json
from dialgym.tasks.multiwoz.goals import VERSION
from dialgym.tasks.multiwoz.types import MultiWOZGoal

SEEDS = {"train": 20_180, "test": 20_181}
"""The goal sets; goal `i` of one is drawn by the generator of ``[seed, i]``."""
SIZE = 1000
FROZEN: dict[str, dict[str, str]] = {
    # the city that is built in
    "499c05af76dc5191": {"train": "3b03caeacc861b2c", "test": "31e9c0e858be0f92"},
    # ConvLab-2's database and goal model
    "658d3c4e2b0de3ed": {"train": "335e49c0e2f45417", "test": "ba93b9784c564b2e"},
    # the database of MultiWOZ's own repository, which has no goal model
    "02546b9712925f69": {"train": "2abda96dbaea11a1", "test": "c0a2cf3572b2bbbd"},
}
"""By the hash of a world: the hash of each of its goal sets."""


@dataclass(frozen=True, eq=False)
class GoalSet(Sequence[MultiWOZGoal]):
    """Goals in a fixed order. Immutable and shared; a pickle says only whose they are.

    Attributes:
        world: whose they are.
        name: ``train`` or ``test``.
        goals: the same for each who names this version and hash.
        version: of the way in which goals are drawn.
        hash: of the goals, 16 digits.
        verified: whether the hash is known for this world; another's goals are its own.
    """

    world: World
    name: str
    goals: tuple[MultiWOZGoal, ...]
    version: int
    hash: str
    verified: bool

    def __reduce__(self) -> tuple[Any, ...]:
        return goal_set, (self.world, self.name)

    def __len__(self) -> int:
        return len(self.goals)

    @overload
    def __getitem__(self, place: int) -> MultiWOZGoal: ...

    @overload
    def __getitem__(self, place: slice) -> tuple[MultiWOZGoal, ...]: ...

    def __getitem__(self, place: int | slice) -> MultiWOZGoal | tuple[MultiWOZGoal, ...]:
        return self.goals[place]

    def draw(self, rng: np.random.Generator) -> MultiWOZGoal:
        """One of the goals, any alike; takes one uniform number."""
        return self.goals[int(rng.random() * len(self.goals))]

    def __str__(self) -> str:
        return f"{self.name} goals v{self.version} {self.hash}"


@lru_cache(maxsize=16)
def goal_set(world: World, name: str) -> GoalSet:
    """The frozen goals of that name, ``train`` or ``test``.

    Raises:
        ValueError: there is no such set; or the world is known, and the goals drawn are not those
            that were frozen, as the way in which they are drawn has changed.
    """
    one_of("goals", name, SEEDS, "MultiWOZ")
    generators = (np.random.Generator(np.random.PCG64([SEEDS[name], i])) for i in range(SIZE))
    goals = tuple(world.draw_goal(generator) for generator in generators)
    known, drawn = FROZEN.get(world.hash, {}).get(name), hash_of(goals)
    if drawn != known and (known or world.stand_in):
        raise ValueError(
            f"goal set {name!r} of MultiWOZ {world.source!r}: expected the goals of version "
            f"{VERSION} with the hash {known or 'of ' + world.hash}; got {drawn}. The database, "
            "the goal model, or what draws goals and random numbers has changed: scores are not "
            "comparable. Install the version of dialgym that the scores were made with; who "
            "changed goals on purpose counts VERSION on and freezes them again."
        )
    return GoalSet(world, name, goals, VERSION, drawn, known is not None)


def goal_options(world: World, name: str) -> tuple[dict[str, Any], ...]:
    """Options of reset for each of the frozen goals of that name."""
    return tuple([{"goal": goal_as_json(goal)} for goal in goal_set(world, name)])


def hash_of(goals: Iterable[MultiWOZGoal]) -> str:
    """Fingerprint of these goals in this order."""
    text = json.dumps([goal_as_json(goal) for goal in goals], separators=(",", ":"))
    return sha256(text.encode()).hexdigest()[:16]
