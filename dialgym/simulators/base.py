"""Protocols of speakers: user simulators and scripted policies, one reply or many at once."""

from collections.abc import Sequence
from typing import Any, NoReturn, Protocol, runtime_checkable

import numpy as np

from dialgym.errors import service_error
from dialgym.io.chat_client import STOPS
from dialgym.io.model_settings import BudgetSpentError

Generators = Sequence[np.random.Generator]


@runtime_checkable
class Speaker(Protocol):
    """Says the next utterance of the party whose turn it is.

    A simulator plays the other party of a single-agent view; a scripted policy plays the learner.
    Both meet this protocol, so that either side of a task can be given to either. A simulator is
    part of the environment, and sees the state as it is; a policy sees what its party may know
    (`Task.observed`), but for an oracle, which says so by an attribute: ``oracle = True``.
    """

    def reply(self, task: Any, state: Any, rng: np.random.Generator) -> str:
        """The utterance of `task.speaker(state)`. Must leave `state` as it was."""
        ...


@runtime_checkable
class BatchSpeaker(Speaker, Protocol):
    """A speaker that can reply in many dialogues of one task at once.

    Batched views ask it once for all dialogues that wait for its party, and scripted policies
    are asked once for all dialogues under way. It may be slow inside: a language model that
    generates in batches, a service that answers many requests at the same time.
    """

    def reply_many(self, task: Any, states: Sequence[Any], rngs: Generators) -> Sequence[str]:
        """k utterances for k `states`, in order; the draws from `rngs` (k,) are those of `reply`.

        The states are not to be changed. Where a task keeps its dialogues as arrays, `states` is
        a sequence that makes each state when it is asked for, and may have more to offer.
        """
        ...


def waits(speaker: Any) -> bool:
    """True if a speaker declares that it waits for something else, ``waits = True``.

    Dialogues with such a one gain by being played at once, whatever their task.
    """
    return bool(getattr(speaker, "waits", False))


def is_oracle(policy: Any) -> bool:
    """True if a policy declares that it knows what its party is not told: ``oracle = True``."""
    return bool(getattr(policy, "oracle", False))


def shown_to(policy: Any, task: Any, state: Any) -> Any:
    """View of a dialogue for a scripted policy of the party whose turn it is.

    That is what the party may know (`Task.observed`); for an oracle it is the state itself.
    """
    return state if is_oracle(policy) else task.observed(state, task.speaker(state))


def all_shown_to(policy: Any, task: Any, states: Sequence[Any], party: str) -> Sequence[Any]:
    """`shown_to` for many dialogues in which `party` has its turn."""
    if is_oracle(policy):
        return states
    together = getattr(states, "observed", None)
    return together(party) if together else [task.observed(state, party) for state in states]


class EachReplies:
    """A `BatchSpeaker` that replies one by one.

    For speakers who gain nothing from company, in tasks that gain by hearing many at once.
    """

    def reply(self, task: Any, state: Any, rng: np.random.Generator) -> str:
        raise NotImplementedError

    def reply_many(self, task: Any, states: Sequence[Any], rngs: Generators) -> list[str]:
        """See `BatchSpeaker`."""
        return [self.reply(task, state, rng) for state, rng in zip(states, rngs)]


class ReplyError(RuntimeError):
    """A speaker failed in the dialogue at `place` among those that it was asked for at once."""

    def __init__(self, place: int, cause: BaseException) -> None:
        super().__init__(f"reply {place}: {type(cause).__name__}: {cause}")
        self.place, self.cause = place, cause


def ask_all(
    speaker: Speaker,
    task: Any,
    states: Sequence[Any],
    rngs: Generators,
    rows: Sequence[int | str],
) -> Sequence[str]:
    """Utterances of the speaker in each of the dialogues, in one call where it knows `reply_many`.

    Args:
        speaker: of the party whose turn it is in all `states`.
        task: the rules.
        states: k dialogues.
        rngs: k generators.
        rows: k numbers of rows, or k names, by which errors call the dialogues.

    Raises:
        RuntimeError: the speaker failed; the message names the row and the cause.
        CompletionRefusedError, TapeMissError, BudgetSpentError: of a language model behind a
            service.
        ImportError: the speaker needs a package that is not installed.
        ValueError: it did not give k strings.
    """
    texts = _reply_all(speaker, task, states, rngs, rows)
    said: Sequence[str] = texts.tolist() if isinstance(texts, np.ndarray) else texts
    for row, text in zip(rows, said):
        check_text(text, speaker, task, _place(row))
    return said


def _reply_all(
    speaker: Speaker,
    task: Any,
    states: Sequence[Any],
    rngs: Generators,
    rows: Sequence[int | str],
) -> Any:
    name = f"{type(speaker).__name__} of {task.name}"
    reply_many = getattr(speaker, "reply_many", None)
    if reply_many is None:
        return [_ask(speaker, task, *each, name) for each in zip(states, rngs, rows)]
    try:
        texts = reply_many(task, states, rngs)
    except ReplyError as error:
        _fail(name, _place(rows[error.place]), error.cause, speaker)
    except Exception as error:
        _fail(name, f"one of the rows {list(rows)}", error, speaker)
    if len(texts) != len(rows):
        raise ValueError(f"{name}: reply_many was asked for {len(rows)} texts; got {len(texts)}.")
    return texts


def check_text(text: Any, speaker: Speaker, task: Any, where: str = "reply") -> None:
    """Raise a ValueError unless what a speaker said is a string."""
    if not isinstance(text, str):
        name = f"{type(speaker).__name__} of {task.name}"
        raise ValueError(f"{name}: expected a string in {where}; got {text!r}.")


def _ask(
    speaker: Speaker, task: Any, state: Any, rng: np.random.Generator, row: int | str, name: str
) -> str:
    try:
        return speaker.reply(task, state, rng)
    except Exception as error:
        _fail(name, _place(row), error, speaker)


def _place(row: int | str) -> str:
    """``row 3``, or the name of a dialogue."""
    return row if isinstance(row, str) else f"row {row}"


def _fail(name: str, where: str, cause: BaseException, speaker: Speaker) -> NoReturn:
    if isinstance(cause, (BudgetSpentError, ImportError)):  # they say all by themselves
        raise cause from None
    if isinstance(cause, STOPS):
        raise type(cause)(f"{where}, {cause}") from None
    unanswered = service_error(f"{name} failed in {where}", speaker, cause)
    if unanswered is not None:
        raise unanswered from None
    raise RuntimeError(f"{name} failed in {where}: {type(cause).__name__}: {cause}") from cause
