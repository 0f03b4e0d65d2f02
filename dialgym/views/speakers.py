"""Speakers of the party that is not the learner."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from dialgym.errors import check_object, one_of, with_settings
from dialgym.io.objects import find_object
from dialgym.io.saved_models import is_saved
from dialgym.simulators import Speaker
from dialgym.simulators.language_model import (
    LM,
    is_language_model,
    language_model,
    language_model_user,
)
from dialgym.tasks import ActPolicy, ActSpeaker, Task
from dialgym.trust import allow


class MissingSpeaker:
    """Stands in for a party that a task has no speaker for, and that never gets the floor."""

    def reply(self, task: Task, state: Any, rng: np.random.Generator) -> str:
        """Raise a RuntimeError that says what to give."""
        raise RuntimeError(
            f"{task.name} has nobody to play its {task.speaker(state)}, which has the floor. Give "
            "one as simulator=, an object with reply(task, state, rng) -> str."
        )


SimulatorLike = str | Mapping[str, Any] | Speaker | ActPolicy | None
"""Values of `simulator=`; see `find_speaker`."""


SAVED = "agents:load_speaker"
"""Function that makes a speaker of a saved model, by its path or name on the hub."""
LANGUAGE_MODELS = (
    "A saved model is given by its path, a language model by its folder or hf:NAME; one behind a "
    "service as openai:MODEL, with base_url among its settings."
)


def find_speaker(task: Task, learner: str, simulator: SimulatorLike) -> Speaker:
    """Find the speaker of the other party.

    Args:
        task: the rules.
        learner: the party that is not played.
        simulator: a registered name; the path of a saved model, a run or a language model,
            ``zoo:NAME`` or ``hf:NAME``; ``openai:MODEL``; or ``module:Class``. A mapping of such a
            ``name`` and settings of who is named, ``{"name": "retrieval", "nearest": 3}``;
            ``{"lm": {"model": ...}}``, a language model behind a service, or ``lm``, the one that
            environment variables name; an object; or None for the task's default.

    An object that chooses acts, an `ActPolicy`, says what they become.

    Raises:
        ValueError: the learner is no party, or there is no such simulator or setting of it.
    """
    other = other_party(task, learner)
    if isinstance(simulator, Mapping):
        settings = dict(simulator)
        if LM in settings:
            return _named(task, other, LM, _settings_of_lm(task, settings))
        return _named(task, other, settings.pop("name", None), settings)
    if isinstance(simulator, str) or simulator is None:
        return _named(task, other, simulator, {})
    check_object("simulator", simulator)
    if isinstance(simulator, Speaker):
        return simulator
    if isinstance(simulator, ActPolicy) and other in task.acts:
        return ActSpeaker(simulator)
    raise ValueError(
        f"simulator of {task.name}: expected a registered name, a mapping of a name and settings, "
        f"or an object with reply(task, state, rng) -> str; got {simulator!r}."
    )


def _named(task: Task, party: str, name: str | None, settings: dict[str, Any]) -> Speaker:
    name = name or next(iter(task.speakers.get(party, {})), None)
    if name is None:
        return MissingSpeaker()
    if name == LM and name not in task.speakers.get(party, {}):
        allow({"simulator": LM})
        name, settings = language_model_user(settings)
    if is_language_model(name):
        allow([name, settings])
        return language_model(name, **settings)
    if name not in task.speakers.get(party, {}) and is_saved(name):
        settings, name = {"model": name, **settings}, SAVED
    if ":" not in name:
        return task.speaker_named(party, name, **settings)
    try:
        make = find_object(name, "simulator")
    except ValueError as error:
        raise ValueError(f"{error} {LANGUAGE_MODELS}") from None
    speaker: Speaker = with_settings(make, f"simulator {name!r} of {task.name}", settings)
    return speaker


def _settings_of_lm(task: Task, given: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of ``{"lm": settings}``."""
    settings = given[LM]
    if len(given) > 1 or not isinstance(settings, Mapping):
        raise ValueError(
            f"simulator of {task.name}: expected {{'lm': {{'model': ..., 'base_url': ...}}}}, and "
            f"nothing beside 'lm'; got {dict(given)!r}."
        )
    return dict(settings)


def other_party(task: Task, learner: str) -> str:
    """The party that is not the learner."""
    one_of("learner", learner, task.parties, task.name)
    first, second = task.parties
    return second if learner == first else first
