"""Many dialogues at once: users one by one, what the system believes of all of them together."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dialgym.language import Constraint, Utterance
from dialgym.tasks.base import SYSTEM, BatchOutcome, Outcome
from dialgym.tasks.exchange import Exchange, add, gather
from dialgym.tasks.slot_filling import arrays
from dialgym.tasks.slot_filling.types import Belief, SlotFillingState, Summary

if TYPE_CHECKING:
    from dialgym.tasks.slot_filling.task import SlotFilling

Generators = Sequence[np.random.Generator]


class SlotFillingBatch:
    """`size` dialogues of a system with the simulated user; see `DialogueBatch` and `ActBatch`."""

    def __init__(self, task: "SlotFilling", size: int) -> None:
        self.task = task
        self._states: list[SlotFillingState] = [None] * size  # type: ignore[list-item]
        self._seen = [0] * size  # utterances that the system has been told of
        self._beliefs = np.zeros((size, task.belief_size()), np.float32)
        self._stale = np.ones(size, bool)

    def reset(self, rows: np.ndarray, rngs: Generators, options: Mapping[str, Any]) -> BatchOutcome:
        for row in rows.tolist():
            self._states[row] = self.task.initial(rngs[row], options)
            self._seen[row] = 0
        return self._answer(rows, [_QUIET] * len(rows), rngs)

    def say(self, rows: np.ndarray, texts: np.ndarray, rngs: Generators) -> BatchOutcome:
        outcomes = []
        for row, text in zip(rows.tolist(), texts.tolist()):
            outcomes.append(self.task.speak(self._states[row], text, rngs[row]))
            self._seen[row] += 1  # its own words are no news to the system
        return self._answer(rows, outcomes, rngs)

    def _answer(self, rows: np.ndarray, said: list[Outcome], rngs: Generators) -> BatchOutcome:
        """Let the users answer where the system has not ended the dialogue."""
        pairs = list(zip(rows.tolist(), said))
        going = [row for row, outcome in pairs if not outcome.terminated]
        answers = self._users_say(going, rngs) if going else {}
        self._stale[rows] = True
        exchanges = [self._exchange(row, outcome, answers.get(row)) for row, outcome in pairs]
        return gather(exchanges, self.task.parties)

    def _users_say(self, rows: list[int], rngs: Generators) -> dict[int, Outcome]:
        """What the answers lead to, by row."""
        task, states = self.task, [self._states[row] for row in rows]
        pairs = zip(rows, states)
        told = [task.user_says(state, state.ahead[0], rngs[row]) for row, state in pairs]
        beliefs = [state.belief for state in states]
        acts, heard = [act for act, _ in told], [heard for _, heard in told]
        arrays.update_many(task.tracker, beliefs, [s.system_act for s in states], heard)
        for state, summary in zip(states, arrays.summarise_many(task.summariser, beliefs)):
            state.summary = summary
        ends = map(task.conclude, states, acts)
        return dict(zip(rows, ends))

    def _exchange(self, row: int, said: Outcome, answer: Outcome | None) -> Exchange:
        lines = self._states[row].heard_by_system
        heard, self._seen[row] = lines[self._seen[row] :], len(lines)
        reward, components = said.rewards[SYSTEM], said.parts(SYSTEM)
        if answer is not None:
            reward += answer.rewards[SYSTEM]
            components = add(components, answer.parts(SYSTEM))
        end = answer or said
        return Exchange(reward, end.terminated, end.truncated, heard, components, end.success)

    def transcript(self, row: int) -> Sequence[Utterance]:
        return self.task.transcript(self._states[row], SYSTEM)

    def constraint(self, row: int) -> Constraint:
        return self.task.constraint(self._states[row], SYSTEM)

    def turn(self, rows: np.ndarray) -> np.ndarray:
        return np.array([self._states[row].turns for row in rows.tolist()], np.int64)

    def state(self, row: int) -> SlotFillingState:
        """The dialogue of a row."""
        return self._states[row]

    def states(self, rows: np.ndarray) -> list[SlotFillingState]:
        """The dialogues of some rows."""
        return [self._states[row] for row in rows.tolist()]

    def beliefs(self) -> np.ndarray:
        """(N, belief_size) float32, a copy: `SlotFilling.belief` of each row."""
        rows = np.flatnonzero(self._stale)
        if len(rows):
            self._beliefs[rows] = arrays.vectors(self.task.summariser, *self._of(rows))
            self._stale[rows] = False
        return self._beliefs.copy()

    def act_masks(self) -> np.ndarray:
        """(N, 3n+7) bool: `SlotFilling.act_mask` of each row."""
        return arrays.masks(self.task.acts, *self._of(np.arange(len(self._states))))

    def _of(self, rows: np.ndarray) -> tuple[list[Belief], list[Summary]]:
        states = self.states(rows)
        return [state.belief for state in states], [state.summary for state in states]


_QUIET = Outcome.of({SYSTEM: {}})
"""A dialogue that has just begun."""
