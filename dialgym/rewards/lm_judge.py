"""Judges by language model: scores of dialogues or replies, read strictly from what one says."""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar, NamedTuple

import numpy as np

from dialgym.errors import finite_number, whole_number
from dialgym.io.chat_client import ChatClient
from dialgym.io.model_settings import ModelSettings
from dialgym.io.tape import Tape, sha256_of, tape_at
from dialgym.language.local_model import LocalModel
from dialgym.language.messages import ASSISTANT, SYSTEM, USER, Message, spoken
from dialgym.language.model_text import last_line
from dialgym.rewards.base import Reply, Reward
from dialgym.simulators.base import ReplyError
from dialgym.simulators.concurrent import EventLoop, results
from dialgym.simulators.language_model import MODEL, SCHEME

VERSION = 1
"""Version of the messages below."""
BOUNDS = ("low", "high")
"""Settings with the bounds of a score."""
DIALOGUE = "dialogue"
"""Label of a `Reply` that stands for a dialogue: a `JudgedDialogue`."""
_SCORE = re.compile(r"[*_#\s]*score[*_\s]*:[*_\s]*([-+]?\d+(?:\.\d+)?)[*_\s]*\.?", re.IGNORECASE)


class Account(NamedTuple):
    """A party's side of a dialogue: its brief, and what it has seen."""

    party: str
    brief: str
    transcript: str


class JudgedDialogue(NamedTuple):
    """A dialogue that is over, for a judge.

    Attributes:
        where: name of the dialogue, for errors.
        learner: the party that is judged.
        accounts: of each party.
        turn: utterances of the learner.
        drawn: number of the dialogue's generator, by which a tape tells equal requests apart.
    """

    where: str
    learner: str
    accounts: tuple[Account, ...]
    turn: int
    drawn: int


class NoScoreError(RuntimeError):
    """A judge gave no score that could be read."""


@dataclass(frozen=True, kw_only=True)
class LanguageModelJudge(ModelSettings, Reward):
    """The score that a language model gives a dialogue that is over, or a reply.

    It reads the brief of a party and the transcript as that party saw it, and ends its answer with
    ``Score: N``. Another last line, and a number beyond the bounds, is no score: the model is told
    what is expected and asked again, in `tries` answers in all. All that are scored together are
    asked at once, up to `concurrency`.

    The fields of `ModelSettings` are its settings too; without a `model`, the environment variable
    ``DIALGYM_LM_MODEL`` names it.

    Attributes:
        party: whose brief and transcript it reads; None for the learner's. Only those of the other
            party tell its goal, where it has one.
        question: put to the model; "" for the usual one.
        low, high: bounds of the score.
        tries: most answers to one question.
        default: score where none of them has one, which is counted; None for a `NoScoreError`.
        record, replay: path of a `Tape`, as of `LanguageModelSpeaker`.

    Raises:
        ValueError: a setting that cannot be, or no model.
        FileNotFoundError: there is nothing to replay.
    """

    name: ClassVar[str] = "lm_judge"
    model: str = ""
    temperature: float | None = 0.0
    max_tokens: int | None = 512
    party: str | None = None
    question: str = ""
    low: float = 0.0
    high: float = 1.0
    tries: int = 3
    default: float | None = None
    record: str | None = None
    replay: str | None = None

    def __post_init__(self) -> None:
        model = (self.model or os.environ.get(MODEL) or "").removeprefix(SCHEME)
        if not model:
            raise ValueError(
                "reward 'lm_judge': expected a model, as in {'lm_judge': {'model': 'NAME', "
                "'base_url': 'http://127.0.0.1:8000/v1'}}, or its name in the environment "
                f"variable {MODEL}."
            )
        vars(self).update(model=model)
        super().__post_init__()
        whole_number("tries", self.tries, "reward 'lm_judge'")
        low, high = (finite_number(f"{n} of reward 'lm_judge'", getattr(self, n)) for n in BOUNDS)
        if not low < high:
            raise ValueError(f"reward 'lm_judge': expected low < high; got {low:g} and {high:g}.")
        if self.default is not None and not low <= self.default <= high:
            raise ValueError(
                f"default of reward 'lm_judge': expected a number from {low:g} to {high:g}; got "
                f"{self.default!r}."
            )
        vars(self).update(bounds=(low, high), tape=tape_at(self.record, self.replay))

    def score(self, replies: Sequence[Reply]) -> np.ndarray:
        """Scores (k,) from `low` to `high`.

        Raises:
            NoScoreError: no answer about one of them had a score, and there is no default.
            NoCompletionError, CompletionRefusedError, BudgetSpentError, TapeMissError: as of
                `ChatClient.complete`.
        """
        try:
            found = results([self._loop.start(partial(self._ask, each)) for each in replies])
        except ReplyError as error:
            raise error.cause from None
        return np.array(found, np.float64)

    async def _ask(self, reply: Reply) -> float:
        case, messages = case_of(reply), self.messages(reply)
        for attempt in range(self.tries):
            drawn = case.drawn + attempt
            answer = await self.client.complete(messages, drawn, case.turn, case.where)
            score = read_score(answer.text, self.low, self.high)
            if score is not None:
                return score
            self.client.count(unscored=1)
            wrong = Message(role=ASSISTANT, content=spoken(answer.text))
            again = f"That has no score. {self._form}"
            messages = [*messages, wrong, Message(role=USER, content=again)]
        if self.default is None:
            raise NoScoreError(
                f"{case.where}: the judge {self.model!r} gave no score in {self.tries} answers; "
                f"expected a last line 'Score: N' with N from {self.low:g} to {self.high:g}, got "
                f"{last_line(answer.text)[:80]!r}. Give another model or question, more "
                "max_tokens, or a default for such dialogues, which are counted."
            )
        self.client.count(defaulted=1)
        return float(self.default)

    def messages(self, reply: Reply) -> list[Message]:
        """Messages that the model is sent about a dialogue or a reply.

        Raises:
            ValueError: `party` is none of the dialogue's.
        """
        case = reply.labels.get(DIALOGUE)
        parts = self._of_reply(reply) if case is None else self._of_dialogue(case)
        what, *sections, question = parts
        first = f"You are the judge of {what}. Read it, and answer the question at its end."
        text = "\n\n".join([*sections, f"Question: {self.question or question}", self._form])
        return [Message(role=SYSTEM, content=first), Message(role=USER, content=text)]

    def _of_dialogue(self, case: JudgedDialogue) -> list[str]:
        party = self.party or case.learner
        known = {account.party: account for account in case.accounts}
        if party not in known:
            raise ValueError(
                f"party of reward 'lm_judge': expected one of {', '.join(known)}; got {party!r}."
            )
        return [
            f"a dialogue of {' and '.join(known)}",
            f"The {party} was told:\n{known[party].brief}",
            f"The dialogue, as the {party} saw it:\n{known[party].transcript}",
            f"How well has the {case.learner} done what the dialogue was for?",
        ]

    def _of_reply(self, reply: Reply) -> list[str]:
        before = "\n".join(f"- {indented(text)}" for text in reply.context)
        return [
            "a reply in a dialogue",
            *([f"What was said before, a line an utterance:\n{before}"] if before else []),
            f"The reply:\n- {indented(reply.text)}",
            "How good is the reply?",
        ]

    @property
    def _form(self) -> str:
        return (
            f"Answer with a number from {self.low:g} (not at all) to {self.high:g} (wholly). You "
            "may reason first; your last line must be 'Score: N', with that number as N."
        )

    def facts(self) -> dict[str, Any]:
        """Facts of its scores: model, host, a hash of sampling and question, version, tape."""
        asked = [self.sampling(), self.seeded, self.question, self.party, *self.bounds, VERSION]
        made = {"name": f"{SCHEME}{self.model}", "host": self.host}
        tape = {} if self.tape is None else {"tape": self.tape.digest}
        return {**made, "sampling": sha256_of(asked)[:8], "version": VERSION, **tape}

    @cached_property
    def tape(self) -> Tape | None:
        """Answers that are recorded or replayed; None for neither."""
        return tape_at(self.record, self.replay)

    @cached_property
    def client(self) -> ChatClient:
        """Client of the service."""
        return ChatClient(self, self.tape, LocalModel(self) if self.in_process else None)

    @cached_property
    def _loop(self) -> EventLoop:
        return EventLoop(self.concurrency)


def indented(text: str) -> str:
    """An utterance in which no line but the first begins as one of the messages' own would."""
    return "\n  ".join(text.splitlines())


def case_of(reply: Reply) -> JudgedDialogue:
    """The dialogue that a reply stands for; of any other reply its place alone."""
    own = reply.labels.get(DIALOGUE)
    if own is not None:
        return own  # type: ignore[no-any-return]
    return JudgedDialogue(f"the reply {reply.text[:40]!r}", "", (), len(reply.context), 0)


def read_score(text: str, low: float, high: float) -> float | None:
    """The score in the last line of an answer, ``Score: 0.5``; None where there is none.

    Reasoning in ``<think> ... </think>`` is left out. The line has nothing else in it but marks of
    emphasis, and the number is from `low` to `high`.
    """
    found = _SCORE.fullmatch(last_line(text).strip())
    score = float(found[1]) if found else None
    return score if score is not None and low <= score <= high else None
