"""Acts of both parties of endgames: a piece and the square it goes to."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from dialgym.tasks.acts import PartyActs, RandomActs
from dialgym.tasks.endgames import policies
from dialgym.tasks.endgames.board import LETTERS, NAMES, NONE, legal_moves
from dialgym.tasks.endgames.task import Endgames, position
from dialgym.tasks.endgames.types import EndgameState

Generator = np.random.Generator


class MoveActs(PartyActs):
    """Moves by their targets, with masks of legal ones.

    Observation, of 0 and 1: for white's king, each kind of its pieces, and the black king, the
    squares on which they stand; last the share of white's turns that are over.

    Args:
        task: the rules.
    """

    party = 0

    def __init__(self, task: Endgames) -> None:
        self.task = task
        self.codes = task.codes[:64] if self.party else task.codes
        letters = [LETTERS[code >> 6] for code in self.codes.tolist()]
        self.names = [f"{kind}{NAMES[at % 64]}" for kind, at in zip(letters, self.codes.tolist())]
        self.size = 64 * (len(task.kinds) + 1) + 1
        self._planes = np.zeros(4, np.int64)  # of each kind
        self._planes[list(task.kinds)] = 64 * np.arange(len(task.kinds))
        self._columns = np.zeros(256, np.int64)
        self._columns[self.codes] = np.arange(len(self.codes))

    def observed(self, states: Sequence[EndgameState]) -> np.ndarray:
        """(k, B) float32: observations of k dialogues."""
        kinds = np.array([state.kinds for state in states])
        squares = np.array([state.squares for state in states])
        seen, rows = np.zeros((len(states), self.size), np.float32), np.arange(len(states))
        planes = np.stack([squares[:, 0], squares[:, 1] + 64 * len(self.task.kinds)], 1)
        pieces = squares[:, 2:] + self._planes[kinds]
        seen[rows[:, None], np.concatenate([planes, pieces], 1)] = 1.0
        seen[:, -1] = [state.spoken[0] / self.task.turns for state in states]
        return seen

    def masks(self, states: Sequence[EndgameState]) -> np.ndarray:
        """(k, A) bool: masks of k dialogues; all moves where the party is not to move."""
        masks = np.zeros((len(states), len(self.codes)), bool)
        places = [position(state) for state in states]
        for row, (state, legal) in enumerate(zip(states, legal_moves(places))):
            mine = state.black == bool(self.party) and not state.over
            masks[row, self._columns[list(legal.moves)] if mine else slice(None)] = True
        return masks

    def observe(self, state: EndgameState) -> np.ndarray:
        return self.observed([state])[0]

    def mask(self, state: EndgameState) -> np.ndarray:
        return self.masks([state])[0]

    def text(self, state: EndgameState, action: Any, rng: Generator) -> str:
        return self.task.text(state, int(self.codes[int(action)]))

    def read(self, state: EndgameState, text: str) -> int:
        """The move that a text says; the first legal one if it says none."""
        code = self.task.read(state, text)
        if code == NONE:
            return int(self.mask(state).argmax())
        return int(self._columns[code])


class WhiteActs(MoveActs):
    """Moves of white's king and of its pieces."""

    policies = {  # noqa: RUF012
        "optimal": policies.Exact,
        "greedy": policies.Greedy,
        "random-mixture": policies.SometimesRandom,
        "random": RandomActs,
    }


class BlackActs(MoveActs):
    """Moves of the black king."""

    party = 1
    policies = {"best": policies.Exact, "weak": policies.SometimesRandom, "random": RandomActs}  # noqa: RUF012
