"""Acts of both parties of a world that answers commands: commands, and beginnings."""

from typing import Any

import numpy as np

from dialgym.tasks.acts import PartyActs, RandomActs
from dialgym.tasks.world_policies import (
    CommandMixture,
    InformedCommand,
    OptimalCommand,
    RandomCommand,
    WorldHost,
)
from dialgym.tasks.worlds import WorldState, WorldTask

Generator = np.random.Generator


class CommandActs(PartyActs):
    """The A commands.

    Observation, of S + 1 entries from 0 to 1: the probability of each place after all that was
    told, which is 1 of one place where all is told; the share of the turns that are over. The mask
    allows what can be given.

    Args:
        task: the rules.
    """

    policies = {  # noqa: RUF012
        "optimal": OptimalCommand,
        "informed": InformedCommand,
        "random-mixture": CommandMixture,
        "random": RandomCommand,
    }

    def __init__(self, task: WorldTask) -> None:
        self.task, self.names = task, task.world.commands
        self.size = len(task.world.ends) + 1

    def observe(self, state: WorldState) -> np.ndarray:
        return self.seen(self.task.tracks(state)[None], np.array([len(state.codes)]))[0]

    def seen(self, tracks: np.ndarray, turns: np.ndarray) -> np.ndarray:
        """(k, S + 1) float32, observations of dialogues with `tracks` (k, H) after `turns` (k,)."""
        made = np.zeros((len(tracks), self.size), np.float32)
        rows, beginnings = np.nonzero(tracks >= 0)
        np.add.at(made, (rows, tracks[rows, beginnings]), 1.0)
        made /= made.sum(1, keepdims=True)
        made[:, -1] = turns / self.task.turns
        return made

    def mask(self, state: WorldState) -> np.ndarray:
        seen = state.seen[-1] if state.seen else 0
        allowed: np.ndarray = self.task.allowed[seen].copy()
        return allowed

    def text(self, state: WorldState, action: Any, rng: Generator) -> str:
        return self.names[int(action)]

    def read(self, state: WorldState, text: str) -> int:
        """The command that a text is; the first one if it is none."""
        return max(self.task.read(text), 0)


class BeginningActs(PartyActs):
    """The H beginnings, of which the host chooses one.

    Observation, of H + 2 entries: the one that was drawn, one-hot; whether one is chosen; the share
    of the system's turns that are over.

    Args:
        task: the rules.
    """

    policies = {"host": WorldHost, "random": RandomActs}  # noqa: RUF012

    def __init__(self, task: WorldTask) -> None:
        self.task, self.names = task, task.world.names
        self.size = len(self.names) + 2

    def observe(self, state: WorldState) -> np.ndarray:
        seen = np.zeros(self.size, np.float32)
        seen[state.start] = 1.0
        seen[-2:] = state.settled, len(state.codes) / self.task.turns
        return seen

    def text(self, state: WorldState, action: Any, rng: Generator) -> str:
        return self.names[int(action)]
