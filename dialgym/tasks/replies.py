"""Base of tasks in which the system writes replies that rewards of language score; its speakers."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium.utils.seeding import np_random

from dialgym.io.tables import fingerprint, locate
from dialgym.rewards import Components, Composite, Examples, Reply, Reward
from dialgym.simulators import EachReplies, Speaker, ask_all
from dialgym.tasks.base import SYSTEM, USER, Outcome, Task
from dialgym.tasks.batch import BatchOutcome, DialogueBatch
from dialgym.tasks.briefs import listed
from dialgym.tasks.state_batch import Generators, StateBatch


class ReplyTask(Task):
    """A task in which what the system says is scored by a `Composite`.

    What follows from an utterance is in three steps, so that many can be scored at once: it is
    taken down, it is scored, and the scores are drawn upon. The user is never rewarded.
    """

    rewards: Composite
    examples: Examples | None = None
    """Labelled replies of the training split, for rewards and measures that learn from them."""

    def conditions(self, party: str) -> Sequence[str]:
        """Those on turns and lengths, and for the system what it is scored by."""
        usual = super().conditions(party)
        return [*usual, scores_sentence(self.rewards)] if party == SYSTEM else usual

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
    def logged(self, state: Any) -> str:
        """Utterance of the data in the place of the next one."""

    @abstractmethod
    def random_reply(self, rng: np.random.Generator) -> str:
        """An utterance of the data in the place of the system; all are as likely."""

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


LIKENESS = "likeness to what a person said there"
CLAUSES = {
    **dict.fromkeys(("f1", "meteor", "rouge", "sacrebleu", "similarity"), LIKENESS),
    "intent": "doing what the person did there, as telling, asking, proposing or agreeing",
    "length": "its length",
    "lm_judge": "the opinion of a language model",
    "distinct": "words that are not repeated",
    "repetition": "repetition",
    "sentiment": "a good tone",
    "toxicity": "how toxic it is",
}
"""By reward, what it sees in an utterance."""


def scores_sentence(rewards: Composite) -> str:
    """Sentence on what an utterance of the system is scored by, and with which weights."""
    seen: dict[str, list[str]] = {}
    for part in rewards.parts:
        clause = CLAUSES.get(part.reward.name, part.name)
        seen.setdefault(clause, []).append(f"{part.name}, weight {part.weight:g}")
    parts = [f"{clause} ({'; '.join(names)})" for clause, names in seen.items()]
    return f"Each of your utterances is scored by {listed(parts)}."


class ReplyBatch(StateBatch):
    """`size` dialogues of the system, with one call of the rewards for all that it says, and one
    of the partner for all that wait for it.

    As it is the rows that differ here, an option of `reset` may be a list or an array: one value
    for each row that begins.
    """

    def __init__(self, task: ReplyTask, size: int, partner: Speaker) -> None:
        super().__init__(task, size, SYSTEM)
        self.partner = partner

    def draw(self, rows: np.ndarray, rngs: Generators, options: Mapping[str, Any]) -> list[Any]:
        several = self.task.options_of_rows(options, len(rows))
        return [self.task.initial(rngs[row], own) for row, own in zip(rows.tolist(), several)]

    def begin(self, rows: np.ndarray, drawn: list[Any], rngs: Generators) -> BatchOutcome:
        self._put(rows, drawn)
        return self._gather(rows, [_BEGUN] * len(rows))

    def say(self, rows: np.ndarray, texts: np.ndarray, rngs: Generators) -> BatchOutcome:
        said = list(zip(rows.tolist(), texts.tolist()))
        replies = [self.task.take(self._states[row], text) for row, text in said]
        scores = self.task.rewards.score(replies)
        self._note_said(rows)
        outcomes = []
        for place, row in enumerate(rows.tolist()):
            own = {name: float(values[place]) for name, values in scores.items()}
            outcomes.append(self.task.conclude(self._states[row], own, rngs[row]))
        pairs = zip(rows.tolist(), outcomes)
        self._answer([row for row, o in pairs if not (o.terminated or o.truncated)], rngs)
        return self._gather(rows, outcomes)

    def _answer(self, rows: list[int], rngs: Generators) -> None:
        """Let the user speak in the rows until it is the system's turn."""
        task, states = self.task, self._states
        while rows := [row for row in rows if task.speaker(states[row]) == USER]:
            asked = [states[row] for row in rows]
            texts = ask_all(self.partner, task, asked, [rngs[row] for row in rows], rows)
            for state, text in zip(asked, texts):
                task.listen(state, text)


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


# Scripted speakers


class LoggedReply(EachReplies):
    """Says what the data has in this place, whatever was said before."""

    oracle = True

    def reply(self, task: ReplyTask, state: Any, rng: np.random.Generator) -> str:
        return task.logged(state)


class RandomReply(EachReplies):
    """Says what was said anywhere in the data; see `ReplyTask.random_reply`."""

    def reply(self, task: ReplyTask, state: Any, rng: np.random.Generator) -> str:
        return task.random_reply(rng)
