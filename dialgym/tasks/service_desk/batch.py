"""Many dialogues of a service desk at once, with a scripted user."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from dialgym.tasks.base import SYSTEM, USER, Outcome
from dialgym.tasks.batch import BatchOutcome
from dialgym.tasks.state_batch import StateBatch

Generators = Sequence[np.random.Generator]


class DeskBatch(StateBatch):
    """`size` dialogues with a user by rules; equal to as many `DeskState`s.

    The user's acts are the rules' own: its texts are made, and not read again.
    """

    def __init__(self, task: Any, size: int, user: Any) -> None:
        super().__init__(task, size, SYSTEM)
        self.user = user

    def begin(self, rows: np.ndarray, drawn: list[Any], rngs: Generators) -> BatchOutcome:
        self._put(rows, drawn)
        for row in rows.tolist():
            self._answer(row, rngs[row])
        none = Outcome({SYSTEM: 0.0, USER: 0.0})
        return self._gather(rows, [none] * len(rows))

    def say(self, rows: np.ndarray, texts: np.ndarray, rngs: Generators) -> BatchOutcome:
        self._note_said(rows)
        said, answers = [], {}
        for row, text in zip(rows.tolist(), texts.tolist()):
            state = self._states[row]
            outcome = self.task.speak(state, text, rngs[row])
            said.append(outcome)
            if state.waiting and not state.over:
                answers[row] = self._answer(row, rngs[row])
        return self._gather(rows, said, answers)

    def _answer(self, row: int, rng: np.random.Generator) -> Outcome:
        """Let the user of a row act until the desk has the floor, or all is over."""
        task, state = self.task, self._states[row]
        while True:
            act = self.user.choose(task.domain, state)
            outcome: Outcome = task.apply(state, USER, task.texts.user(act, rng), act)
            if not state.waiting or state.over:
                return outcome

    def observations(self) -> np.ndarray:
        """(N, B) float32: see `desk_acts.DeskActs.observe`."""
        acts: Any = self.task.acts[SYSTEM]
        return np.array([acts.features(state) for state in self._states], np.float32)

    def act_masks(self) -> np.ndarray:
        """(N, A) bool: see `desk_acts.DeskActs.mask`."""
        acts: Any = self.task.acts[SYSTEM]
        return np.array([acts.allowed(state) for state in self._states], bool)
