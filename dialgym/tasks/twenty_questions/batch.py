"""Twenty questions in batches: the rules of `task.py` over arrays."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dialgym.language import Constraint, Utterance
from dialgym.tasks.base import SYSTEM, USER
from dialgym.tasks.batch import BatchOutcome, RowStates, silence
from dialgym.tasks.twenty_questions.belief import normalised
from dialgym.tasks.twenty_questions.task import TwentyQuestions
from dialgym.tasks.twenty_questions.types import (
    NO,
    NOTHING,
    REPLIES,
    UNCLEAR,
    YES,
    TwentyQuestionsState,
)

Generators = Sequence[np.random.Generator]


class TwentyQuestionsBatch:
    """`size` dialogues with the answerer of the rules; equal to as many `TwentyQuestionsState`s."""

    def __init__(self, task: TwentyQuestions, size: int) -> None:
        self.task = task
        self.item = np.zeros(size, np.int64)
        self.turns = np.zeros(size, np.int64)
        self.texts = np.full((size, task.turns), "", object)
        self.codes = np.zeros((size, task.turns), np.int64)
        self.negated = np.zeros((size, task.turns), bool)
        self.replies = np.zeros((size, task.turns), np.int8)  # as they were said
        self._weights: np.ndarray | None = None  # (size, K) of things, after `_counted` answers
        self._counted = np.zeros(size, np.int64)
        self._said = np.array(REPLIES)

    def draw(self, rows: np.ndarray, rngs: Generators, options: Mapping[str, Any]) -> list[int]:
        return [self.task.draw_item(rngs[row], options) for row in rows.tolist()]

    def begin(self, rows: np.ndarray, drawn: list[int], rngs: Generators) -> BatchOutcome:
        self.item[rows] = drawn
        self._begin(rows)
        return silence(len(rows))

    def _begin(self, rows: np.ndarray) -> None:
        self.turns[rows] = self._counted[rows] = 0
        if self._weights is not None:
            self._weights[rows] = self.task.beliefs.start()

    def say(self, rows: np.ndarray, texts: np.ndarray, rngs: Generators) -> BatchOutcome:
        task, read = self.task, self.task.understanding.read
        said = texts.tolist()
        asked = np.array([read(text) for text in said], np.int64).reshape(-1, 2)
        codes, negated = asked[:, 0], asked[:, 1].astype(bool)
        at = self.turns[rows]
        self.texts[rows, at], self.codes[rows, at], self.negated[rows, at] = said, codes, negated
        self.turns[rows] += 1
        right = codes == task.questions + self.item[rows]
        over = right | (self.turns[rows] == task.turns)
        replies = self.replies[rows, at] = self._replies(rows, codes, negated, rngs)
        reward = np.where(right, 0.0, -task.cost.amount)
        return BatchOutcome(
            reward,
            over,
            np.zeros(len(rows), bool),
            right,
            {task.cost.name: reward},
            self._said[replies],
            np.ones(len(rows), np.int64),
            np.arange(len(rows)),
        )

    def _replies(
        self, rows: np.ndarray, codes: np.ndarray, negated: np.ndarray, rngs: Generators
    ) -> np.ndarray:
        """(k,) int8 what the answerer says."""
        task = self.task
        right = codes == task.questions + self.item[rows]
        true = np.where(codes == NOTHING, UNCLEAR, np.where(right, YES, NO)).astype(np.int8)
        asked = (codes != NOTHING) & (codes < task.questions)
        true[asked] = task.table.truth[self.item[rows[asked]], codes[asked]]
        turned = negated & (true != UNCLEAR)
        true[turned] = 1 - true[turned]
        if task.noise or task.vague:
            for place in np.flatnonzero(asked).tolist():
                true[place] = task.beliefs.told(int(true[place]), rngs[int(rows[place])])
        return true

    def answers(self, rows: np.ndarray, turn: slice | np.ndarray) -> np.ndarray:
        """Values of `TwentyQuestionsState.answers` at turns: (k,) int64, (k, turns) of a slice."""
        replies = self.replies[rows, turn].astype(np.int64)
        turned = self.negated[rows, turn] & (replies != UNCLEAR)
        return np.where(turned, 1 - replies, replies)

    def beliefs(self, rows: np.ndarray) -> np.ndarray:
        """(k, K) float64, the posteriors: see `TwentyQuestions.posterior`."""
        if self._weights is None:
            self._weights = np.tile(self.task.beliefs.start(), (len(self.item), 1))
        while (behind := self._counted[rows] < self.turns[rows]).any():
            late = rows[behind]
            at = self._counted[late]
            self._weights[late] = self.task.beliefs.weigh(
                self._weights[late], self.codes[late, at], self.answers(late, at)
            )
            self._counted[late] += 1
        return normalised(self._weights[rows])

    def transcript(self, row: int) -> list[Utterance]:
        turns = self.turns[row]
        said = zip(self.texts[row, :turns].tolist(), self.replies[row, :turns].tolist())
        both = (((SYSTEM, text), (USER, REPLIES[reply])) for text, reply in said)
        return [Utterance(*line) for lines in both for line in lines]

    def constraint(self, row: int) -> Constraint:
        constraint = self.task.static_constraint(SYSTEM)
        assert constraint is not None, "it is the same in every state"
        return constraint

    def turn(self, rows: np.ndarray) -> np.ndarray:
        return self.turns[rows]

    def states(self, rows: np.ndarray) -> "Dialogues":
        """The dialogues of the rows."""
        return Dialogues(self, rows)

    def state(self, row: int) -> TwentyQuestionsState:
        """The dialogue of a row, made again."""
        turns, item = int(self.turns[row]), int(self.item[row])
        state = TwentyQuestionsState(
            item,
            self.task.opening(item),
            self.transcript(row),
            self.codes[row, :turns].tolist(),
            self.answers(np.array([row]), slice(turns))[0].tolist(),
            bool(self.negated[row, turns - 1]) if turns else False,
        )
        state.over = self.task.guessed(state) or turns == self.task.turns
        return state

    def restore(self, row: int, state: TwentyQuestionsState, turn: int) -> None:
        """Let a row go on from a dialogue in which the questioner is to speak."""
        self._begin(np.array([row]))
        self.item[row], self.turns[row] = state.item, turn
        said = [[x.text for x in state.lines if x.speaker == party] for party in (SYSTEM, USER)]
        self.texts[row, :turn], self.codes[row, :turn] = said[0], state.codes
        self.negated[row, :turn] = [self.task.understanding.read(text)[1] for text in said[0]]
        self.replies[row, :turn] = [REPLIES.index(text) for text in said[1]]


class Dialogues(RowStates):
    """Rows of a batch, whose beliefs need no states."""

    def beliefs(self) -> np.ndarray:
        """(k, K): see `TwentyQuestionsBatch.beliefs`."""
        beliefs: np.ndarray = self._batch.beliefs(self._rows)
        return beliefs

    def turns(self) -> np.ndarray:
        """(k,) utterances of the questioner so far."""
        turns: np.ndarray = self._batch.turn(self._rows)
        return turns


def beliefs_of(
    task: TwentyQuestions, states: Sequence[TwentyQuestionsState]
) -> tuple[np.ndarray, np.ndarray]:
    """(k, K) the posteriors of the dialogues, and (k,) their turns so far."""
    if isinstance(states, Dialogues):
        return states.beliefs(), states.turns()
    turns = np.array([state.turns for state in states], np.int64)
    return np.array([task.posterior(state) for state in states]), turns
