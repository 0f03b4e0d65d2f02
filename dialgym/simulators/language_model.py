"""Language models behind a service as speakers of either party, in any task."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dialgym.errors import one_of, with_settings
from dialgym.io.chat_client import ChatClient
from dialgym.io.model_settings import ModelSettings
from dialgym.io.tape import Tape
from dialgym.language.messages import Message, opening
from dialgym.language.model_text import READINGS, REQUESTS
from dialgym.language.text import UNKNOWN, as_typed
from dialgym.simulators.base import Generators
from dialgym.simulators.concurrent import Asynchronous

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
        tape: a `Tape`, its path, or a mapping of its arguments; None records nothing.
        answer: what of a text is said, as of `dialgym.Chat`: ``whole``, ``last line``, ``tag``.

    Attributes:
        client: of the service; its ``usage`` counts what was asked.

    Raises:
        ValueError: a setting that cannot be.
    """

    waits = True

    def __init__(
        self,
        settings: ModelSettings | Mapping[str, Any] | str,
        tape: Tape | Mapping[str, Any] | str | None = None,
        answer: str = "whole",
    ) -> None:
        one_of("answer", answer, READINGS, "a language model")
        if isinstance(settings, str):
            settings = ModelSettings(settings)
        elif isinstance(settings, Mapping):
            settings = with_settings(ModelSettings, "the language model", settings)
        assert isinstance(settings, ModelSettings)
        self.client = ChatClient(settings, Tape.opened(tape))
        self.answer = answer
        self._together = Asynchronous(self, settings.concurrency)

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
    own = {key: settings.pop(key) for key in ("tape", "answer") if key in settings}
    model = name.removeprefix(SCHEME)
    return LanguageModelSpeaker({"model": model, **settings}, **own)


def is_language_model(name: Any) -> bool:
    """Tell if a text names a language model behind a service."""
    return isinstance(name, str) and name.startswith(SCHEME)
