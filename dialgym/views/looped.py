"""A batch of dialogues for any task: one `Dialogue` a row, in a loop."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dialgym.language import Constraint, Utterance
from dialgym.simulators import Speaker
from dialgym.tasks import BatchOutcome, DialogueBatch, Task
from dialgym.tasks.exchange import gather
from dialgym.views.dialogue import (
    Dialogue,
    default_speaker,
    find_speaker,
    other_party,
)

Generators = Sequence[np.random.Generator]


class LoopedBatch:
    """A `DialogueBatch` by the task's own rules; what a task's vectorised form must equal."""

    def __init__(self, task: Task, size: int, learner: str, other: Speaker) -> None:
        self.task, self.learner = task, learner
        self.dialogues = [Dialogue(task, learner, other) for _ in range(size)]

    def reset(self, rows: np.ndarray, rngs: Generators, options: Mapping[str, Any]) -> BatchOutcome:
        begun = [self.dialogues[i].start(rngs[i], options) for i in rows.tolist()]
        return gather(begun, self.task.parties)

    def say(self, rows: np.ndarray, texts: np.ndarray, rngs: Generators) -> BatchOutcome:
        pairs = zip(rows.tolist(), texts.tolist())
        said = [self.dialogues[i].say(text, rngs[i]) for i, text in pairs]
        return gather(said, self.task.parties)

    def transcript(self, row: int) -> Sequence[Utterance]:
        return self.task.transcript(self.dialogues[row].state, self.learner)

    def constraint(self, row: int) -> Constraint:
        return self.task.constraint(self.dialogues[row].state, self.learner)

    def state(self, row: int) -> Any:
        """The dialogue of a row."""
        return self.dialogues[row].state

    def turn(self, rows: np.ndarray) -> np.ndarray:
        return np.array([self.dialogues[i].turn for i in rows.tolist()], np.int64)


def make_batch(
    task: Task, size: int, learner: str, simulator: str | Speaker | None
) -> DialogueBatch:
    """The task's own vectorised form where it has one for this simulator, else the loop."""
    batch = own_batch(task, size, learner, simulator)
    if batch is not None:
        return batch
    return LoopedBatch(task, size, learner, find_speaker(task, learner, simulator))


def own_batch(
    task: Task, size: int, learner: str, simulator: str | Speaker | None
) -> DialogueBatch | None:
    """The task's own vectorised form, if it has one for this simulator."""
    if simulator is not None and not isinstance(simulator, str):
        return None
    name = simulator or default_speaker(task, other_party(task, learner)) or ""
    return task.batch(size, learner, name)
