"""Scripted speakers of worlds that answer commands: the host, and systems of graded skill."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from dialgym.errors import share
from dialgym.tasks.world_batch import known_of
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


class ByKnowledge(Commander):
    """A system that chooses by what it was told; a subclass has `choose`."""

    def choose(self, task: Any, seen: int, tracks: np.ndarray, turns: int, rng: Generator) -> int:
        """The code of a command.

        Args:
            task: the rules.
            seen: what was told last.
            tracks: (H,) see `CommandWorld.follow`.
            turns: commands so far.
            rng: of what is drawn.
        """
        raise NotImplementedError

    def act(self, task: WorldTask, state: WorldState, rng: Generator) -> int:
        return self.choose(task, state.seen[-1], task.tracks(state), len(state.codes), rng)

    def reply_many(
        self, task: WorldTask, states: Sequence[WorldState], rngs: Sequence[Generator]
    ) -> Sequence[str]:
        """See `dialgym.simulators.BatchSpeaker`."""
        seen, tracks, turns = known_of(task, states)
        rows = zip(seen.tolist(), tracks, turns.tolist(), rngs, strict=True)
        return [task.world.commands[self.choose(task, *row)] for row in rows]


class RandomCommand(ByKnowledge):
    """Any command that can be given, all equally likely."""

    def choose(
        self, task: WorldTask, seen: int, tracks: np.ndarray, turns: int, rng: Generator
    ) -> int:
        return drawn(task.allowed[seen], rng)


class OptimalCommand(ByKnowledge):
    """The command of the best expected return, by all that was told.

    Of commands that are worth as much it takes those by which the goal is reached soonest; what is
    still alike is drawn.
    """

    def choose(
        self, task: WorldTask, seen: int, tracks: np.ndarray, turns: int, rng: Generator
    ) -> int:
        return drawn(task.exact.best(tracks, task.turns - turns), rng)


class CommandMixture(ByKnowledge):
    """With probability `smart` what `OptimalCommand` says, else what `RandomCommand` does."""

    def __init__(self, smart: float = 0.5) -> None:
        self.smart = share("smart of random-mixture", smart)
        self.parts = RandomCommand(), OptimalCommand()

    def choose(
        self, task: WorldTask, seen: int, tracks: np.ndarray, turns: int, rng: Generator
    ) -> int:
        return self.parts[int(rng.random() < self.smart)].choose(task, seen, tracks, turns, rng)


class InformedCommand(Commander):
    """The command of the best return for who sees all: no policy of the system does better."""

    oracle = True

    def act(self, task: WorldTask, state: WorldState, rng: Generator) -> int:
        here = np.array([state.place])
        return drawn(task.informed.best(here, task.turns - len(state.codes)), rng)


def drawn(allowed: np.ndarray, rng: Generator) -> int:
    """One of the places that are True."""
    places = np.flatnonzero(allowed)
    return int(places[rng.integers(len(places))])
