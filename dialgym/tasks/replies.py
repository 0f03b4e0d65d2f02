"""The base of tasks in which the system writes replies that rewards of language score."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium.utils.seeding import np_random

from dialgym.io.tables import fingerprint, locate
from dialgym.language import Constraint, Utterance
from dialgym.rewards import Components, Composite, Examples, Reply, Reward
from dialgym.simulators import Speaker, ask_all
from dialgym.tasks.base import SYSTEM, USER, Outcome, Task
from dialgym.tasks.batch import BatchOutcome, DialogueBatch, Exchange, gather

Generators = Sequence[np.random.Generator]


class ReplyTask(Task):
    """A task in which what the system says is scored by a `Composite`.

    What follows from an utterance is in three steps, so that many can be scored at once: it is
    taken down, it is scored, and the scores are drawn upon. The user is never rewarded.
    """

    rewards: Composite
    examples: Examples | None = None
    """Labelled replies of the training split, for rewards and measures that learn from them."""

    @classmethod
    def surroundings(cls, settings: Mapping[str, Any]) -> str | None:
        """The state of the data that the setting `data` names."""
        data = settings.get("data")
        return None if data is None else fingerprint(locate(data, cls.name))

    @abstractmethod
    def take(self, state: Any, text: str) -> Reply:
        """Take down what the system says; what the rewards are to look at."""

    def first_reply(self, seed: int, text: str, options: Mapping[str, Any] | None = None) -> Reply:
        """Input of the rewards for `text`, the first utterance in the dialogue of that seed."""
        return self.take(self.initial(np_random(seed)[0], options), text)

    def judge(self) -> Reward:
        """A judge of held-out replies that pays no reward: of another method and other data.

        Raises:
            ValueError: there is none, or the data has not what it learns from.
        """
        raise ValueError(f"{self.name} has no judge beside its rewards.")

    @abstractmethod
    def conclude(self, state: Any, scores: Components, rng: np.random.Generator) -> Outcome:
        """Outcome of the utterance that was taken down last."""

    def listen(self, state: Any, text: str) -> Outcome:
        """Let the user say `text`, in tasks where it ever does."""
        raise NotImplementedError(f"{self.name}: the user never has the floor.")

    def speak(self, state: Any, text: str, rng: np.random.Generator) -> Outcome:
        if self.speaker(state) == USER:
            return self.listen(state, text)
        scores = self.rewards.score([self.take(state, text)])
        return self.conclude(state, {name: float(s[0]) for name, s in scores.items()}, rng)

    def options_of_rows(
        self, options: Mapping[str, Any], count: int
    ) -> Sequence[Mapping[str, Any]]:
        columns = {name: _column(name, value, count) for name, value in options.items()}
        return [{name: column[i] for name, column in columns.items()} for i in range(count)]

    def batch(self, size: int, learner: str, simulator: Speaker) -> DialogueBatch | None:
        return ReplyBatch(self, size, simulator) if learner == SYSTEM else None


class ReplyBatch:
    """`size` dialogues of the system, with one call of the rewards for all that it says, and one
    of the partner for all that wait for it.

    As it is the rows that differ here, an option of `reset` may be a list or an array: one value
    for each row that begins.
    """

    def __init__(self, task: ReplyTask, size: int, partner: Speaker) -> None:
        self.task, self.partner = task, partner
        self._states: list[Any] = [None] * size
        self._turns = np.zeros(size, np.int64)
        self._seen = [0] * size  # utterances of the transcript that the system has been given

    def draw(self, rows: np.ndarray, rngs: Generators, options: Mapping[str, Any]) -> list[Any]:
        several = self.task.options_of_rows(options, len(rows))
        return [self.task.initial(rngs[row], own) for row, own in zip(rows.tolist(), several)]

    def begin(self, rows: np.ndarray, drawn: list[Any], rngs: Generators) -> BatchOutcome:
        self._turns[rows] = 0
        for row, state in zip(rows.tolist(), drawn):
            self._states[row], self._seen[row] = state, 0
        return gather([self._exchange(row, _BEGUN) for row in rows.tolist()], self.task.parties)

    def say(self, rows: np.ndarray, texts: np.ndarray, rngs: Generators) -> BatchOutcome:
        said = list(zip(rows.tolist(), texts.tolist()))
        replies = [self.task.take(self._states[row], text) for row, text in said]
        scores = self.task.rewards.score(replies)
        self._turns[rows] += 1
        outcomes = []
        for place, row in enumerate(rows.tolist()):
            own = {name: float(values[place]) for name, values in scores.items()}
            outcomes.append(self.task.conclude(self._states[row], own, rngs[row]))
            self._seen[row] += 1  # the system knows its own words
        pairs = list(zip(rows.tolist(), outcomes))
        self._answer([row for row, o in pairs if not (o.terminated or o.truncated)], rngs)
        return gather([self._exchange(*pair) for pair in pairs], self.task.parties)

    def _answer(self, rows: list[int], rngs: Generators) -> None:
        """Let the user speak in the rows until it is the system's turn."""
        task, states = self.task, self._states
        while rows := [row for row in rows if task.speaker(states[row]) == USER]:
            asked = [states[row] for row in rows]
            texts = ask_all(self.partner, task, asked, [rngs[row] for row in rows], rows)
            for state, text in zip(asked, texts):
                task.listen(state, text)

    def _exchange(self, row: int, said: Outcome) -> Exchange:
        lines = self.task.transcript(self._states[row], SYSTEM)
        heard, self._seen[row] = lines[self._seen[row] :], len(lines)
        end = said.terminated, said.truncated
        return Exchange(said.rewards[SYSTEM], *end, heard, said.parts(SYSTEM), said.success)

    def transcript(self, row: int) -> Sequence[Utterance]:
        return self.task.transcript(self._states[row], SYSTEM)

    def constraint(self, row: int) -> Constraint:
        return self.task.constraint(self._states[row], SYSTEM)

    def state(self, row: int) -> Any:
        """The dialogue of a row."""
        return self._states[row]

    def states(self, rows: np.ndarray) -> list[Any]:
        """The dialogues of some rows."""
        return [self._states[row] for row in rows.tolist()]

    def turn(self, rows: np.ndarray) -> np.ndarray:
        return self._turns[rows]

    def restore(self, row: int, state: Any, turn: int) -> None:
        """Let a row go on from a state."""
        self._states[row], self._turns[row] = state, turn
        self._seen[row] = len(self.task.transcript(state, SYSTEM))


def midpoint(composite: Composite) -> float:
    """Halfway between the bounds of a composite: what a success is measured by."""
    low, high = composite.bounds
    return (low + high) / 2


def _column(name: str, value: Any, count: int) -> Any:
    if not isinstance(value, list | tuple | np.ndarray):
        return [value] * count
    if len(value) != count:
        raise ValueError(
            f"option {name!r} of reset: expected one value, or one for each of the {count} rows; "
            f"got {len(value)}."
        )
    return value


_BEGUN = Outcome.of({SYSTEM: {}, USER: {}})
"""A dialogue that has just begun."""
