"""Many endgames at once, against a scripted player."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from dialgym.tasks.base import SYSTEM, Outcome
from dialgym.tasks.batch import BatchOutcome
from dialgym.tasks.endgames.board import NONE, legal_moves
from dialgym.tasks.endgames.task import after, position
from dialgym.tasks.state_batch import StateBatch

Generators = Sequence[np.random.Generator]


class EndgamesBatch(StateBatch):
    """`size` games against a player by rules; equal to as many `EndgameState`s.

    Legal moves of all positions that come up are found together, before the rules ask for them.
    """

    def __init__(self, task: Any, size: int, learner: str, player: Any) -> None:
        super().__init__(task, size, learner)
        self.player = player

    def begin(self, rows: np.ndarray, drawn: list[Any], rngs: Generators) -> BatchOutcome:
        self._put(rows, drawn)
        none = Outcome(dict.fromkeys(self.task.parties, 0.0))
        return self._answered(rows, [none] * len(rows), rngs)

    def say(self, rows: np.ndarray, texts: np.ndarray, rngs: Generators) -> BatchOutcome:
        self._note_said(rows)
        return self._answered(rows, self._speak(rows.tolist(), texts.tolist(), rngs), rngs)

    def _answered(
        self, rows: np.ndarray, said: Sequence[Outcome], rngs: Generators
    ) -> BatchOutcome:
        """Let the player move where it is to, and find the moves that the learner then has."""
        states = {row: self._states[row] for row in rows.tolist()}
        own = [r for r, s in states.items() if not s.over and s.black == (self.learner == SYSTEM)]
        texts = self.player.reply_many(self.task, [states[r] for r in own], [rngs[r] for r in own])
        answers = dict(zip(own, self._speak(own, texts, rngs)))
        legal_moves([position(state) for state in states.values() if not state.over])
        return self._gather(rows, said, answers)

    def _speak(self, rows: list[int], texts: Sequence[str], rngs: Generators) -> list[Outcome]:
        task, states = self.task, [self._states[row] for row in rows]
        codes = [task.read(state, text) for state, text in zip(states, texts)]
        moved = [(s, code) for s, code in zip(states, codes) if code != NONE and not s.black]
        legal_moves([(s.kinds, tuple(after(s, code)), True) for s, code in moved])
        return [task.speak(s, t, rngs[r]) for s, t, r in zip(states, texts, rows)]

    def observations(self) -> np.ndarray:
        """(N, B) float32: see `party_acts.MoveActs.observe`."""
        observed: np.ndarray = self.task.acts[self.learner].observed(self._states)
        return observed

    def act_masks(self) -> np.ndarray:
        """(N, A) bool: see `party_acts.MoveActs.mask`."""
        masks: np.ndarray = self.task.acts[self.learner].masks(self._states)
        return masks
