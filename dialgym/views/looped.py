"""A batch of dialogues for any task: one `Dialogue` a row, in a loop."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dialgym.language import Constraint, Utterance
from dialgym.simulators import Speaker
from dialgym.tasks import BatchOutcome, DialogueBatch, Task
from dialgym.views.dialogue import (
    Dialogue,
    Exchange,
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
        return self._collect([self.dialogues[i].start(rngs[i], options) for i in rows.tolist()])

    def say(self, rows: np.ndarray, texts: np.ndarray, rngs: Generators) -> BatchOutcome:
        pairs = zip(rows.tolist(), texts.tolist())
        return self._collect([self.dialogues[i].say(text, rngs[i]) for i, text in pairs])

    def _collect(self, exchanges: list[Exchange]) -> BatchOutcome:
        heard = [(row, line) for row, e in enumerate(exchanges) for line in e.heard]
        parties = self.task.parties
        return BatchOutcome(
            np.array([e.reward for e in exchanges], np.float64),
            np.array([e.terminated for e in exchanges], bool),
            np.array([e.truncated for e in exchanges], bool),
            np.array([bool(e.success) for e in exchanges], bool),
            _columns([e.components for e in exchanges]),
            np.array([line.text for _, line in heard], np.str_),
            np.array([parties.index(line.speaker) for _, line in heard], np.int64),
            np.array([row for row, _ in heard], np.int64),
        )

    def transcript(self, row: int) -> Sequence[Utterance]:
        return self.task.transcript(self.dialogues[row].state, self.learner)

    def constraint(self, row: int) -> Constraint:
        return self.task.constraint(self.dialogues[row].state, self.learner)

    def turn(self, rows: np.ndarray) -> np.ndarray:
        return np.array([self.dialogues[i].turn for i in rows.tolist()], np.int64)


def _columns(components: list[dict[str, float]]) -> dict[str, np.ndarray]:
    """Each component over all rows; NaN in a row that does not have it."""
    names = dict.fromkeys(name for row in components for name in row)
    return {name: np.array([row.get(name, np.nan) for row in components]) for name in names}


def make_batch(
    task: Task, size: int, learner: str, simulator: str | Speaker | None
) -> DialogueBatch:
    """The task's own vectorised form where it has one for this simulator, else the loop."""
    if simulator is None or isinstance(simulator, str):
        name = simulator or default_speaker(task, other_party(task, learner)) or ""
        batch = task.batch(size, learner, name)
        if batch is not None:
            return batch
    return LoopedBatch(task, size, learner, find_speaker(task, learner, simulator))
