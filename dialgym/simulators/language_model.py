"""Language models behind a service as speakers of either party, in any task."""

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dialgym.errors import check_arguments, one_of, parameters_of, with_settings
from dialgym.io.chat_client import ChatClient
from dialgym.io.model_settings import ModelSettings
from dialgym.io.tape import Tape, sha256_of
from dialgym.language.messages import Message, opening
from dialgym.language.model_text import READINGS, REQUESTS
from dialgym.language.text import UNKNOWN, as_typed
from dialgym.simulators.base import Generators
from dialgym.simulators.concurrent import Asynchronous

UNSPOKEN = ("api_key_env", "timeout", "retries", "backoff", "concurrency", "budget")
"""Settings that leave the words as they are, beside the tapes."""
TAPES = ("record", "replay")
OWN = (*TAPES, "answer")
"""Settings of the speaker, beside those of its model."""
SCHEME = "openai:"
"""Beginning of the names of such speakers: ``openai:MODEL``."""
DRAWN = 2**62
"""Numbers are drawn below this one, one a reply."""


class LanguageModelSpeaker:
    """A `BatchSpeaker` whose words a language model writes, asked in many dialogues at once.

    It is told its brief (`Task.brief`) and what its party has heard and said, as the messages of a
    chat, and knows nothing else of a dialogue. Reasoning is not said. The dialogue's generator
    draws one number a reply: the seed of sampling, and what tells equal requests apart on a tape.

    Args:
        settings: the model and its service; a mapping of the fields of `ModelSettings`, or its
            name there.
        record: path of a `Tape` that takes all answers, and gives those that it has already.
        replay: path of one that gives all answers; nobody is asked.
        answer: what of a text is said, as of `dialgym.Chat`: ``whole``, ``last line``, ``tag``.

    Attributes:
        client: of the service.

    Raises:
        ValueError: a setting that cannot be, or both tapes.
        FileNotFoundError: there is nothing to replay.
    """

    waits = True

    def __init__(
        self,
        settings: ModelSettings | Mapping[str, Any] | str,
        record: str | os.PathLike[str] | None = None,
        replay: str | os.PathLike[str] | None = None,
        answer: str = "whole",
    ) -> None:
        one_of("answer", answer, READINGS, "a language model")
        if isinstance(settings, str):
            settings = ModelSettings(settings)
        elif isinstance(settings, Mapping):
            settings = with_settings(ModelSettings, "the language model", settings)
        assert isinstance(settings, ModelSettings)
        self.client = ChatClient(settings, _tape(record, replay))
        self.answer = answer
        self._together = Asynchronous(self, settings.concurrency)

    @property
    def name(self) -> str:
        """``openai:MODEL``."""
        return f"{SCHEME}{self.client.settings.model}"

    @property
    def sampling(self) -> dict[str, Any]:
        """Settings that its words depend on: fields of its requests, and how they are read."""
        settings = self.client.settings
        fields = settings.sampling()
        return {"request": fields, "seeded": settings.seeded, "answer": self.answer}

    @property
    def label(self) -> dict[str, str]:
        """Facts that tell it from others of its name: its host, and a hash of `sampling`."""
        return {"host": self.client.settings.host, "sampling": sha256_of(self.sampling)[:8]}

    async def areply(self, task: Any, state: Any, rng: np.random.Generator) -> str:
        """The utterance of `task.speaker(state)`; see `ChatClient.complete` for errors."""
        party = task.speaker(state)
        seen = task.observed(state, party)
        messages, turn = prompt(task, seen, party, REQUESTS.get(self.answer))
        where = f"{task.name}, turn {turn} of the {party}"
        drawn = int(rng.integers(DRAWN))
        written = await self.client.complete(messages, drawn, turn, where)
        return heard(READINGS[self.answer](written.text), task, party)

    def reply(self, task: Any, state: Any, rng: np.random.Generator) -> str:
        """The same, awaited."""
        return self._together.reply(task, state, rng)

    def reply_many(self, task: Any, states: Sequence[Any], rngs: Generators) -> list[str]:
        """See `BatchSpeaker`."""
        return self._together.reply_many(task, states, rngs)


def _tape(
    record: str | os.PathLike[str] | None, replay: str | os.PathLike[str] | None
) -> Tape | None:
    if record is not None and replay is not None:
        raise ValueError(
            f"a language model: expected one tape, to record or to replay; got {str(record)!r} "
            f"and {str(replay)!r}. What is on a tape that is recorded is not asked again."
        )
    if replay is not None:
        return Tape(replay, "replay")
    return None if record is None else Tape(record)


def prompt(
    task: Any, state: Any, party: str, request: str | None = None
) -> tuple[list[Message], int]:
    """Messages for the next turn of `party`, and the number of its turns so far.

    Args:
        task: the rules.
        state: a dialogue, or what the party may know of it.
        party: whose turn it is.
        request: a sentence to end the brief with.
    """
    lines = task.transcript(state, party)[task.notes(state, party) :]
    brief = task.brief(state, party)
    brief = f"{brief}\n\n{request}" if request else brief
    return opening(brief, lines, party), sum(line.speaker == party for line in lines)


def heard(text: str, task: Any, party: str) -> str:
    """Words that the rules hear of a text: in the task's characters, cut to its limit."""
    facts = task.facts
    typed = as_typed(" ".join(text.split()) if "\n" not in facts.charset else text, facts.charset)
    return "".join([c if c in facts.charset else UNKNOWN for c in typed[: facts.limit(party)]])


def language_model(name: str, **settings: Any) -> LanguageModelSpeaker:
    """The speaker of a name ``openai:MODEL``.

    Args:
        name: as above.
        settings: further fields of `ModelSettings`, and arguments of the speaker.

    Raises:
        ValueError: it names no model, or has no such setting.
    """
    check_arguments(settings, (*parameters_of(ModelSettings), *OWN), f"settings of {name!r}")
    own = {key: settings.pop(key) for key in OWN if key in settings}
    return LanguageModelSpeaker({"model": name.removeprefix(SCHEME), **settings}, **own)


def replayed_model(name: str, sampling: Mapping[str, Any], tape: str | os.PathLike[str]) -> Any:
    """Mapping of a speaker of the same `LanguageModelSpeaker.sampling`, whose answers a tape has.

    Args:
        name: ``openai:MODEL``.
        sampling: as above.
        tape: its path.
    """
    unset = dict.fromkeys(("temperature", "top_p", "max_tokens"))
    read = {"seeded": sampling["seeded"], "answer": sampling["answer"]}
    return {"name": name, **unset, "extra": sampling["request"], **read, "replay": str(tape)}


def spoken_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of a speaker without those that leave its words as they are."""
    return {key: v for key, v in settings.items() if key not in (*UNSPOKEN, *TAPES)}


def label_of(policy: Any) -> dict[str, str]:
    """Facts that tell a language model from others of its name; {} of any other policy."""
    return policy.label if isinstance(policy, LanguageModelSpeaker) else {}


def facts_of(policy: Any) -> dict[str, Any]:
    """The same, and its sampling."""
    return {**policy.label, **policy.sampling} if isinstance(policy, LanguageModelSpeaker) else {}


def row_name(speaker: LanguageModelSpeaker) -> str:
    """Name of its rows: the model, its host, and the hash of its sampling."""
    model = re.sub(r"[^A-Za-z0-9._-]+", "-", speaker.client.settings.model).lstrip("._-")
    return "-".join([model[:32], speaker.label["host"][:22], speaker.label["sampling"]])


def is_language_model(name: Any) -> bool:
    """Tell if a text names a language model behind a service."""
    return isinstance(name, str) and name.startswith(SCHEME)
