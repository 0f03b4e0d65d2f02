"""Visual dialogues in batches: one call of the answerer and one of the guesser for all."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from dialgym.simulators import Speaker, ask_all
from dialgym.tasks.base import Outcome
from dialgym.tasks.batch import BatchOutcome
from dialgym.tasks.state_batch import Generators, StateBatch
from dialgym.tasks.visual_dialogue.task import VisualDialogue
from dialgym.tasks.visual_dialogue.types import QUESTIONER, VisualState


class VisualBatch(StateBatch):
    """`size` dialogues of the questioner, equal to as many `VisualState`s."""

    def __init__(self, task: VisualDialogue, size: int, answerer: Speaker) -> None:
        super().__init__(task, size, QUESTIONER)
        self.answerer = answerer

    def draw(
        self, rows: np.ndarray, rngs: Generators, options: Mapping[str, Any]
    ) -> list[VisualState]:
        return [self.task.begin(rngs[row], options) for row in rows.tolist()]

    def begin(self, rows: np.ndarray, drawn: list[VisualState], rngs: Generators) -> BatchOutcome:
        self.task.rank(drawn)
        self._put(rows, drawn)
        return self._gather(rows, [_BEGUN] * len(rows))

    def say(self, rows: np.ndarray, texts: np.ndarray, rngs: Generators) -> BatchOutcome:
        task, places, states = self.task, rows.tolist(), self.states(rows)
        outcomes = [task.ask(state, text) for state, text in zip(states, texts.tolist())]
        self._note_said(rows)
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
        return self._gather(rows, outcomes)


_BEGUN = Outcome.of({QUESTIONER: {}})
