"""Axes of transfer: errors, users, environments."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from inspect import signature
from types import MappingProxyType
from typing import Any, NamedTuple

from dialgym.experiments.panel import Panel, PanelEnvironment
from dialgym.registry import entry_of
from dialgym.rollouts.player import make_dialogue
from dialgym.tasks.multiwoz.user import BEHAVIOURS
from dialgym.tasks.slot_filling.user import USERS
from dialgym.views.making import make_vec

ERROR_RATES = (0.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5)
IMPATIENT = {"like": "standard", "patience": 1}
"""A user that hangs up when an act is repeated; the standard one does at the fourth or fifth."""
KINDS_OF_USERS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "SlotFilling": {**{name: name for name in USERS}, "impatient": IMPATIENT},
        "MultiWOZ": {name: name for name in BEHAVIOURS},
    }
)
"""The setting `user` of each task that has several, by what tables call it."""


class Target(NamedTuple):
    """A setting that a policy is scored in.

    Attributes:
        name: of the column.
        id: of the environment.
        settings: as for `gym.make`.
    """

    name: str
    id: str
    settings: Mapping[str, Any]


@dataclass(frozen=True)
class Axis:
    """One way in which settings differ.

    Attributes:
        name: on the command line.
        title: of tables and pictures.
        targets: of a place of a panel; none where the axis does not apply.
        home: what the place itself is called among the targets.
        scripted: whether scripted policies are scored, too.
    """

    name: str
    title: str
    targets: Callable[[Panel, PanelEnvironment], Sequence[Target]]
    home: Callable[[PanelEnvironment], str]
    scripted: bool = True


def _errors(_: Panel, place: PanelEnvironment) -> list[Target]:
    if "error_rate" not in signature(type(_task(place))).parameters:
        return []
    return [
        Target(_percent(rate), place.id, {**place.settings, "error_rate": rate})
        for rate in ERROR_RATES
    ]


def _error_rate(place: PanelEnvironment) -> str:
    return _percent(_task(place).error_rate)


def _percent(rate: float) -> str:
    return f"{100 * rate:g} %"


def _users(_: Panel, place: PanelEnvironment) -> list[Target]:
    kinds = KINDS_OF_USERS.get(_task(place).name, {})
    return [Target(name, place.id, {**place.settings, "user": u}) for name, u in kinds.items()]


def _user(place: PanelEnvironment) -> str:
    task = _task(place)
    kinds = KINDS_OF_USERS.get(task.name, {})
    return next((name for name, user in kinds.items() if user == task.user), str(task.user))


def _environments(panel: Panel, place: PanelEnvironment) -> list[Target]:
    return [
        Target(other.short, other.id, other.scoring_settings)
        for other in panel.environments
        if spaces_of(other) == spaces_of(place)
    ]


AXES: Mapping[str, Axis] = MappingProxyType(
    {
        axis.name: axis
        for axis in (
            Axis("errors", "Other error rates than in training", _errors, _error_rate),
            Axis("users", "Other users than in training", _users, _user),
            Axis(
                "environments",
                "Other environments than that of training",
                _environments,
                lambda place: place.short,
                scripted=False,
            ),
        )
    }
)


# Where a policy fits


class Spaces:
    """Observations and actions of an environment; equal ones let a policy play in both."""

    def __init__(self, place: PanelEnvironment) -> None:
        env: Any = make_vec(
            entry_of(place.id), 1, autoreset_mode="Disabled", **place.settings
        ).unwrapped
        self.window = env.single_observation_space.shape
        self.actions = int(env.single_action_space.n)
        self.tokenizer = getattr(env.single_observation_space, "tokenizer", None)
        env.close()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Spaces) and self._compared == other._compared

    __hash__ = None  # type: ignore[assignment]  # tokenizers are compared, not hashed

    @property
    def _compared(self) -> tuple[Any, ...]:
        return self.window, self.actions, self.tokenizer

    def __str__(self) -> str:
        size = " x ".join(map(str, self.window))
        seen = f"{size} numbers" if self.tokenizer is None else f"windows of {size} tokens"
        return f"{seen}, {self.actions} actions"


def spaces_of(place: PanelEnvironment) -> Spaces:
    """Observations and actions of an environment."""
    return _spaces(place.id, json.dumps(dict(place.settings), sort_keys=True))


@cache
def _spaces(env_id: str, settings: str) -> Spaces:
    return Spaces(PanelEnvironment(env_id, json.loads(settings)))


def exchanges(panel: Panel) -> list[tuple[str, list[str]]]:
    """The groups of environments within which policies of a panel can be exchanged.

    Returns:
        Of each group what is seen and done in it, and its environments.
    """
    groups: list[tuple[Spaces, list[str]]] = []
    for place in panel.environments:
        spaces = spaces_of(place)
        group = next((names for known, names in groups if known == spaces), None)
        if group is None:
            groups.append((spaces, [place.short]))
        else:
            group.append(place.short)
    return [(str(spaces), names) for spaces, names in groups]


def _task(place: PanelEnvironment) -> Any:
    return make_dialogue(place.id, place.settings).task
