"""A batch of dialogues for any task: one `Dialogue` for each row, in a loop."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dialgym.language import Constraint, Utterance
from dialgym.simulators import Speaker, ask_all
from dialgym.tasks import BatchOutcome, DialogueBatch, Task
from dialgym.tasks.batch import gather
from dialgym.views.dialogue import Dialogue, SimulatorLike, find_speaker

Generators = Sequence[np.random.Generator]


class LoopedBatch:
    """A `DialogueBatch` by the task's own rules; what a task's vectorised form must equal."""

    def __init__(self, task: Task, size: int, learner: str, other: Speaker) -> None:
        self.task, self.learner, self.other = task, learner, other
        self.dialogues = [Dialogue(task, learner, other) for _ in range(size)]

    def reset(self, rows: np.ndarray, rngs: Generators, options: Mapping[str, Any]) -> BatchOutcome:
        for row in rows.tolist():
            self.dialogues[row] = Dialogue(self.task, self.learner, self.other)
            self.dialogues[row].begin(rngs[row], options)
        return self._answer(rows.tolist(), rngs)

    def say(self, rows: np.ndarray, texts: np.ndarray, rngs: Generators) -> BatchOutcome:
        for row, text in zip(rows.tolist(), texts.tolist()):
            self.dialogues[row].speak(text, rngs[row])
        return self._answer(rows.tolist(), rngs)

    def _answer(self, rows: list[int], rngs: Generators) -> BatchOutcome:
        """Let the other party speak until nobody waits for it; in each round it is asked once."""
        waiting = rows
        while waiting := [row for row in waiting if self.dialogues[row].waiting]:
            states = [self.dialogues[row].state for row in waiting]
            texts = ask_all(self.other, self.task, states, [rngs[row] for row in waiting], waiting)
            for row, text in zip(waiting, texts):
                self.dialogues[row].hear(text, rngs[row])
        return gather([self.dialogues[row].exchange() for row in rows], self.task.parties)

    def transcript(self, row: int) -> Sequence[Utterance]:
        return self.task.transcript(self.dialogues[row].state, self.learner)

    def constraint(self, row: int) -> Constraint:
        return self.task.constraint(self.dialogues[row].state, self.learner)

    def state(self, row: int) -> Any:
        """The dialogue of a row."""
        return self.dialogues[row].state

    def states(self, rows: np.ndarray) -> list[Any]:
        """The dialogues of some rows."""
        return [self.dialogues[row].state for row in rows.tolist()]

    def restore(self, row: int, state: Any, turn: int) -> None:
        """Let a row go on from a state."""
        self.dialogues[row] = Dialogue(self.task, self.learner, self.other)
        self.dialogues[row].restore(state, turn)

    def turn(self, rows: np.ndarray) -> np.ndarray:
        return np.array([self.dialogues[i].turn for i in rows.tolist()], np.int64)


def make_batch(task: Task, size: int, learner: str, simulator: SimulatorLike) -> DialogueBatch:
    """The task's own vectorised form where it has one for this simulator, else the loop."""
    other = find_speaker(task, learner, simulator)
    batch = task.batch(size, learner, other)
    return LoopedBatch(task, size, learner, other) if batch is None else batch
