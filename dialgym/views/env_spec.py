"""Spec of an environment, with the settings that its task came to have."""

import json
from collections.abc import Mapping
from copy import copy
from pathlib import Path
from typing import Any

from dialgym.registry import entries
from dialgym.tasks import Task
from dialgym.views.options import TakesOptions, ViewOptions

UNIMPORTANT = (
    "env_id",
    "num_envs",
    "workers",
    "vectorization_mode",
    "autoreset_mode",
    "render_mode",
)
"""Arguments of ``gym.make`` and ``gym.make_vec`` that do not change what dialogues are like."""


class SpecMixin(TakesOptions):
    """Mixin whose `spec` has facts of the task that Gymnasium's registry lacks.

    ``gym.make`` gives a spec the settings that it was called with. Where the surroundings decide
    what they mean, such as which files a name stands for, ``spec.kwargs`` says what was found;
    an env made from it again, anywhere, plays the same or cannot be made.

    ``spec.max_episode_steps`` is one more than the longest dialogue has steps (or the limit that
    was asked for): a `TimeLimit` made of it never cuts what the task would not. It is not
    registered, as ``gym.make`` would then put that wrapper around every env.

    ``spec.reward_threshold`` is the mean return of the task's expert, where the registry has one.
    """

    task: Task
    learner: str
    options: ViewOptions
    steps_per_utterance = 1
    """Most actions that an utterance of the learner takes."""
    given: Mapping[str, Any] = {}
    """The settings that ``gym.make`` was called with, whatever they came to mean."""
    _spec: Any = None

    def __repr__(self) -> str:
        name = self._spec.id if self._spec is not None else repr(self.task)
        count = f", num_envs={self.num_envs}" if hasattr(self, "num_envs") else ""
        given = "".join(f", {key}={value!r}" for key, value in self.given.items())
        return f"{type(self).__name__}({name}{given}{count})"

    @property
    def spec(self) -> Any:
        """Gymnasium's `EnvSpec`, or None where the env was not made by an id."""
        return self._spec

    @spec.setter
    def spec(self, spec: Any) -> None:
        if spec is not None:
            spec, kwargs = copy(spec), spec.kwargs
            self.given = {key: value for key, value in kwargs.items() if key not in UNIMPORTANT}
            spec.kwargs = {**kwargs, **self.task.played}
            spec.max_episode_steps = self.options.step_limit or self._most_steps() + 1
            if spec.reward_threshold is None and spec.id in entries():
                spec.reward_threshold = entries()[spec.id].row.expert(self.task.stand_in)
        self._spec = spec

    def _most_steps(self) -> int:
        """The steps of the longest dialogue."""
        facts, system = self.task.facts, self.task.parties[0]
        own = facts.heard[self.learner][self.learner]
        utterances = facts.turn_limit if self.learner == system else own
        return utterances * self.steps_per_utterance


def made_from(env: Any) -> dict[str, Any] | None:
    """The id and settings by which an env, or a Stable-Baselines3 `VecEnv` of dialogues, was made.

    Returns:
        ``{"id": ..., "settings": {...}, "left_out": [...]}`` of plain values, where `left_out`
        names the settings that are objects, and of an act view ``"acts": [...]``, their names;
        None where the env was not made by an id or a task.
    """
    while env is not None and not isinstance(env, SpecMixin):
        several = getattr(env, "envs", None)
        env = several[0] if several else getattr(env, "venv", None) or getattr(env, "env", None)
    if env is None or env.spec is None:
        return None
    settings = {
        key: _absolute(value, env.task.played.get(key))
        for key, value in env.given.items()
        if _is_plain(value)
    }
    made = {
        "id": env.spec.id,
        "settings": settings,
        "left_out": sorted(env.given.keys() - settings),
    }
    return {**made, "acts": list(env.acts.names)} if hasattr(env, "acts") else made


def _absolute(value: Any, played: Any) -> Any:
    """A setting, with a relative path made absolute."""
    if isinstance(value, str) and isinstance(played, str) and value != played:
        return played if str(Path(value).absolute()).startswith(played) else value
    return value


def _is_plain(value: Any) -> bool:
    try:
        json.dumps(value)
    except (TypeError, ValueError):
        return False
    return True
