"""Visual dialogues in batches: one call of the answerer and one of the guesser for all."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dialgym.language import Constraint, Utterance
from dialgym.simulators import Speaker, ask_all
from dialgym.tasks.base import Outcome
from dialgym.tasks.batch import BatchOutcome, Exchange, gather
from dialgym.tasks.visual_dialogue.task import VisualDialogue
from dialgym.tasks.visual_dialogue.types import QUESTIONER, VisualState

Generators = Sequence[np.random.Generator]


class VisualBatch:
    """`size` dialogues of the questioner, equal to as many `VisualState`s."""

    def __init__(self, task: VisualDialogue, size: int, answerer: Speaker) -> None:
        self.task, self.answerer = task, answerer
        self._states: list[Any] = [None] * size
        self._turns = np.zeros(size, np.int64)

    def draw(
        self, rows: np.ndarray, rngs: Generators, options: Mapping[str, Any]
    ) -> list[VisualState]:
        return [self.task.begin(rngs[row], options) for row in rows.tolist()]

    def begin(self, rows: np.ndarray, drawn: list[VisualState], rngs: Generators) -> BatchOutcome:
        self._turns[rows] = 0
        self.task.rank(drawn)
        for row, state in zip(rows.tolist(), drawn):
            self._states[row] = state
        return gather([_exchange(_BEGUN, state.lines) for state in drawn], self.task.parties)

    def say(self, rows: np.ndarray, texts: np.ndarray, rngs: Generators) -> BatchOutcome:
        task, places = self.task, rows.tolist()
        states: list[VisualState] = [self._states[row] for row in places]
        self._turns[rows] += 1
        outcomes = [task.ask(state, text) for state, text in zip(states, texts.tolist())]
        going = [i for i, state in enumerate(states) if not state.over]
        if going:
            asked = [states[i] for i in going]
            own = [rngs[places[i]] for i in going]
            said = ask_all(self.answerer, task, asked, own, [places[i] for i in going])
            for state, text in zip(asked, said):
                task.take(state, text)
            task.rank(asked)
            for i in going:
                outcomes[i] = task.conclude(states[i])
        heard = [
            [line for line in state.lines[-1:] if line.speaker != QUESTIONER] for state in states
        ]
        return gather([_exchange(*pair) for pair in zip(outcomes, heard)], task.parties)

    def transcript(self, row: int) -> Sequence[Utterance]:
        return self.task.transcript(self._states[row], QUESTIONER)

    def constraint(self, row: int) -> Constraint:
        return self.task.constraint(self._states[row], QUESTIONER)

    def states(self, rows: np.ndarray) -> list[Any]:
        """The dialogues of some rows."""
        return [self._states[row] for row in rows.tolist()]

    def turn(self, rows: np.ndarray) -> np.ndarray:
        turns: np.ndarray = self._turns[rows]
        return turns

    def restore(self, row: int, state: Any, turn: int) -> None:
        """Let a row go on from a dialogue."""
        self._states[row], self._turns[row] = state, turn


_BEGUN = Outcome.of({QUESTIONER: {}})


def _exchange(said: Outcome, heard: Sequence[Utterance]) -> Exchange:
    own = said.rewards[QUESTIONER], said.terminated, said.truncated
    return Exchange(*own, list(heard), said.parts(QUESTIONER), said.success)
