"""Base of batches that keep their dialogues as states of the task, one a row."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dialgym.language import Constraint, Utterance
from dialgym.tasks.base import Outcome, Task
from dialgym.tasks.batch import BatchOutcome, Exchange, add, gather

Generators = Sequence[np.random.Generator]


class StateBatch:
    """A `DialogueBatch` of states; a subclass has `begin` and `say`.

    Args:
        task: the rules.
        size: number of rows.
        learner: the party that speaks.
    """

    def __init__(self, task: Task, size: int, learner: str) -> None:
        self.task: Any = task
        self.learner = learner
        self._states: list[Any] = [None] * size
        self._turns = np.zeros(size, np.int64)
        self._seen = [0] * size  # utterances of the transcript that the learner has been given

    def draw(self, rows: np.ndarray, rngs: Generators, options: Mapping[str, Any]) -> list[Any]:
        return [self.task.initial(rngs[row], options) for row in rows.tolist()]

    def _put(self, rows: np.ndarray, states: Sequence[Any]) -> None:
        """Begin rows again with states of which the learner has heard nothing."""
        self._turns[rows] = 0
        for row, state in zip(rows.tolist(), states):
            self._states[row], self._seen[row] = state, 0

    def _note_said(self, rows: np.ndarray) -> None:
        """Count an utterance of the learner in each row; it knows its own words."""
        self._turns[rows] += 1
        for row in rows.tolist():
            self._seen[row] += 1

    def _gather(
        self, rows: np.ndarray, said: Sequence[Outcome], answers: Mapping[int, Outcome] = {}
    ) -> BatchOutcome:
        """The outcomes of what was said in the rows, and of the other party's `answers` by row."""
        pairs = zip(rows.tolist(), said)
        exchanges = [self._exchange(row, outcome, answers.get(row)) for row, outcome in pairs]
        return gather(exchanges, self.task.voices)

    def _exchange(self, row: int, said: Outcome, answer: Outcome | None) -> Exchange:
        lines = self.transcript(row)
        heard, self._seen[row] = lines[self._seen[row] :], len(lines)
        reward, components = said.rewards[self.learner], said.parts(self.learner)
        if answer is not None:
            reward += answer.rewards[self.learner]
            components = add(components, answer.parts(self.learner))
        end = answer or said
        return Exchange(reward, end.terminated, end.truncated, heard, components, end.success)

    def transcript(self, row: int) -> Sequence[Utterance]:
        lines: Sequence[Utterance] = self.task.transcript(self._states[row], self.learner)
        return lines

    def constraint(self, row: int) -> Constraint:
        constraint: Constraint = self.task.constraint(self._states[row], self.learner)
        return constraint

    def state(self, row: int) -> Any:
        """The dialogue of a row."""
        return self._states[row]

    def states(self, rows: np.ndarray) -> list[Any]:
        """The dialogues of some rows."""
        return [self._states[row] for row in rows.tolist()]

    def turn(self, rows: np.ndarray) -> np.ndarray:
        turns: np.ndarray = self._turns[rows]
        return turns

    def restore(self, row: int, state: Any, turn: int) -> None:
        """Let a row go on from a state."""
        self._states[row], self._turns[row] = state, turn
        self._seen[row] = len(self.transcript(row))
