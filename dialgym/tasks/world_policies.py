"""Scripted speakers of worlds that answer commands: the host, and systems of graded skill."""

from typing import Any

import numpy as np

from dialgym.errors import share
from dialgym.tasks.worlds import WorldState, WorldTask

Generator = np.random.Generator


class WorldHost:
    """Chooses the beginning that was drawn at reset."""

    def act(self, task: WorldTask, state: WorldState, rng: Generator) -> int:
        """See `dialgym.tasks.ActPolicy`."""
        return state.start

    def reply(self, task: WorldTask, state: WorldState, rng: Generator) -> str:
        return task.world.names[state.start]


class Commander:
    """A system that chooses among the codes of commands; a subclass has `act`."""

    def act(self, task: WorldTask, state: WorldState, rng: Generator) -> int:
        """See `dialgym.tasks.ActPolicy`."""
        raise NotImplementedError

    def reply(self, task: Any, state: WorldState, rng: Generator) -> str:
        text: str = task.world.commands[self.act(task, state, rng)]
        return text


class RandomCommand(Commander):
    """Any command that can be given, all equally likely."""

    def act(self, task: WorldTask, state: WorldState, rng: Generator) -> int:
        return drawn(task.allowed[state.seen[-1]], rng)


class OptimalCommand(Commander):
    """The command of the best expected return, by all that was told.

    Of commands that are worth as much it takes those by which the goal is reached soonest; what is
    still alike is drawn.
    """

    def act(self, task: WorldTask, state: WorldState, rng: Generator) -> int:
        left = task.turns - len(state.codes)
        return drawn(task.exact.best(task.tracks(state), left), rng)


class InformedCommand(Commander):
    """The command of the best return for who sees all: no policy of the system does better."""

    oracle = True

    def act(self, task: WorldTask, state: WorldState, rng: Generator) -> int:
        here = np.array([state.place])
        return drawn(task.informed.best(here, task.turns - len(state.codes)), rng)


class CommandMixture(Commander):
    """With probability `smart` what `OptimalCommand` says, else what `RandomCommand` does."""

    def __init__(self, smart: float = 0.5) -> None:
        self.smart = share("smart of random-mixture", smart)
        self.parts = RandomCommand(), OptimalCommand()

    def act(self, task: WorldTask, state: WorldState, rng: Generator) -> int:
        return self.parts[int(rng.random() < self.smart)].act(task, state, rng)


def drawn(allowed: np.ndarray, rng: Generator) -> int:
    """One of the places that are True."""
    places = np.flatnonzero(allowed)
    return int(places[rng.integers(len(places))])
