"""Language models behind a service as speakers of either party, in any task."""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from dialgym.errors import check_arguments, one_of, parameters_of, settings_as, with_settings
from dialgym.io.chat_client import ChatClient
from dialgym.io.model_settings import ModelSettings
from dialgym.io.tape import TapeMissError, sha256_of, tape_at
from dialgym.language.local_model import LocalModel
from dialgym.simulators.base import Generators
from dialgym.simulators.concurrent import Asynchronous
from dialgym.simulators.model_prompt import PromptForm

UNSPOKEN = ("api_key_env", "timeout", "retries", "backoff", "concurrency", "budget")
"""Settings that leave the words as they are, beside the tapes."""
TAPES = ("record", "replay", "on_miss")
FORM = tuple(field.name for field in fields(PromptForm))
"""Settings of its prompt."""
LM, MODEL = "lm", "DIALGYM_LM_MODEL"
"""Name of a simulator that is such a speaker, and the environment variable with its model."""
RULE = "rule"
MISSES = ("error", RULE)
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
        form: see `PromptForm`, or a mapping of its fields.
        on_miss: where the tape that is replayed has no answer: ``error``, or ``rule`` for the
            task's own speaker of the party, the first that it names, which is counted.

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
        form: PromptForm | Mapping[str, Any] | None = None,
        on_miss: str = MISSES[0],
    ) -> None:
        one_of("on_miss", on_miss, MISSES, "a language model")
        self.form = settings_as(PromptForm, "prompt of a language model", form)
        if isinstance(settings, str):
            settings = ModelSettings(settings)
        elif isinstance(settings, Mapping):
            settings = with_settings(ModelSettings, "the language model", settings)
        assert isinstance(settings, ModelSettings)
        service = LocalModel(settings) if settings.in_process else None
        self.client = ChatClient(settings, tape_at(record, replay), service)
        self.on_miss = on_miss
        self._together = Asynchronous(self, settings.concurrency)

    @property
    def name(self) -> str:
        """``openai:MODEL``."""
        return f"{SCHEME}{self.client.settings.model}"

    @property
    def sampling(self) -> dict[str, Any]:
        """Settings that its words depend on: fields of its requests, and the form of its prompt."""
        settings = self.client.settings
        request = settings.sampling()
        return {"request": request, "seeded": settings.seeded, "form": self.form.facts()}

    @property
    def label(self) -> dict[str, str]:
        """Facts that tell it from others of its name: its host, and a hash of `sampling`."""
        return {"host": self.client.settings.host, "sampling": sha256_of(self.sampling)[:8]}

    async def areply(self, task: Any, state: Any, rng: np.random.Generator) -> str:
        """The utterance of `task.speaker(state)`; see `ChatClient.complete` for errors."""
        party = task.speaker(state)
        seen = task.observed(state, party)
        messages, turn = self.form.messages(task, seen, party)
        where = f"{task.name}, turn {turn} of the {party}"
        drawn = int(rng.integers(DRAWN))
        try:
            written = await self.client.complete(messages, drawn, turn, where)
        except TapeMissError:
            if self.on_miss != RULE:
                raise
            self.client.count(missed=1)
            return rule_twin(task, party).reply(task, state, rng)
        return self.form.heard(written.text, task, party)

    def reply(self, task: Any, state: Any, rng: np.random.Generator) -> str:
        """Wait for the reply; see `areply`."""
        return self._together.reply(task, state, rng)

    def reply_many(self, task: Any, states: Sequence[Any], rngs: Generators) -> list[str]:
        """See `BatchSpeaker`."""
        return self._together.reply_many(task, states, rngs)


def rule_twin(task: Any, party: str) -> Any:
    """The task's own speaker of a party, the first that it names.

    Raises:
        ValueError: it names none.
    """
    names = [*task.speakers.get(party, {})]
    if not names:
        raise ValueError(
            f"on_miss='rule': {task.name} has no speaker of its own for the {party}. Leave it out."
        )
    return task.speaker_named(party, names[0])


def language_model(name: str, **settings: Any) -> LanguageModelSpeaker:
    """The speaker of a name ``openai:MODEL``.

    Args:
        name: as above.
        settings: further fields of `ModelSettings` and of `PromptForm`, and tapes.

    Raises:
        ValueError: it names no model, or has no such setting.
    """
    known = (*parameters_of(ModelSettings), *TAPES, *FORM)
    check_arguments(settings, known, f"settings of {name!r}")
    form = {key: settings.pop(key) for key in FORM if key in settings}
    tapes = {key: settings.pop(key) for key in TAPES if key in settings}
    model = name.removeprefix(SCHEME)
    return LanguageModelSpeaker({"model": model, **settings}, **tapes, form=form)


def language_model_user(settings: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """The name ``openai:MODEL`` and the settings of ``{"lm": {"model": MODEL, ...}}``.

    Without a model the environment variable ``DIALGYM_LM_MODEL`` names it.

    Raises:
        ValueError: nothing names a model.
    """
    own = dict(settings)
    model = own.pop("model", None) or os.environ.get(MODEL)
    if not model:
        raise ValueError(
            f"simulator 'lm': expected a model, as in {{'lm': {{'model': 'NAME', 'base_url': "
            f"'http://127.0.0.1:8000/v1'}}}}, or its name in the environment variable {MODEL}."
        )
    return f"{SCHEME}{model}", own


def replayed_model(name: str, sampling: Mapping[str, Any], tape: str | os.PathLike[str]) -> Any:
    """Settings of a speaker with the same `LanguageModelSpeaker.sampling` that replays a tape.

    Args:
        name: ``openai:MODEL``.
        sampling: as above.
        tape: its path.
    """
    unset = dict.fromkeys(("temperature", "top_p", "max_tokens"))
    form = {key: text for key, text in sampling["form"].items() if key in FORM}
    own = {"extra": sampling["request"], "seeded": sampling["seeded"], "replay": str(tape)}
    return {"name": name, **unset, **form, **own}


def spoken_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of a speaker without those that leave its words as they are."""
    return {key: v for key, v in settings.items() if key not in (*UNSPOKEN, *TAPES)}


def label_of(policy: Any) -> dict[str, str]:
    """Facts that tell a language model from others of its name; {} of any other policy."""
    return policy.label if isinstance(policy, LanguageModelSpeaker) else {}


def facts_of(policy: Any) -> dict[str, Any]:
    """Facts of a language model and its sampling; {} for any other speaker."""
    return {**policy.label, **policy.sampling} if isinstance(policy, LanguageModelSpeaker) else {}


def tape_of(speaker: Any) -> dict[str, str]:
    """``{"tape": Tape.digest}`` of a language model with a tape; {} of any other speaker."""
    tape = speaker.client.tape if isinstance(speaker, LanguageModelSpeaker) else None
    return {} if tape is None else {"tape": tape.digest}


def models_of(**speakers: Any) -> dict[str, dict[str, str]]:
    """Names, labels and tapes of the language models among some speakers, by their roles."""
    return {
        role: {"name": speaker.name, **speaker.label, **tape_of(speaker)}
        for role, speaker in speakers.items()
        if isinstance(speaker, LanguageModelSpeaker)
    }


def row_name(speaker: LanguageModelSpeaker) -> str:
    """Name of its rows: the model, its host, and the hash of its sampling."""
    model = re.sub(r"[^A-Za-z0-9._-]+", "-", speaker.client.settings.model).lstrip("._-")
    return "-".join([model[:32], speaker.label["host"][:22], speaker.label["sampling"]])


def is_language_model(name: Any) -> bool:
    """Tell if a text names a language model behind a service."""
    return isinstance(name, str) and name.startswith(SCHEME)
