"""Axes of transfer: what is changed, and the settings that policies are scored in then."""

from __future__ import annotations

import json
from collections.abc import Mapping
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

ERRORS, USER, ENVIRONMENTS = "errors", "users", "environments"
AXES: Mapping[str, str] = MappingProxyType(
    {
        ERRORS: "Other error rates than in training",
        USER: "Other users than in training",
        ENVIRONMENTS: "Other environments than that of training",
    }
)
"""Titles by name."""
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


def targets_of(axis: str, panel: Panel, place: PanelEnvironment) -> list[Target]:
    """The settings that policies of an environment are scored in; none where an axis has none."""
    if axis == ENVIRONMENTS:
        return [
            Target(other.short, other.id, other.scoring_settings)
            for other in panel.environments
            if spaces_of(other) == spaces_of(place)
        ]
    task = _task(place)
    if axis == USER:
        changes = {name: {"user": user} for name, user in KINDS_OF_USERS.get(task.name, {}).items()}
    else:
        has_errors = "error_rate" in signature(type(task)).parameters
        rates = ERROR_RATES if has_errors else ()
        changes = {_percent(rate): {"error_rate": rate} for rate in rates}
    return [Target(name, place.id, {**place.settings, **more}) for name, more in changes.items()]


def home_of(axis: str, place: PanelEnvironment) -> str:
    """Name of the environment itself among the targets of an axis."""
    if axis == ENVIRONMENTS:
        return place.short
    task = _task(place)
    if axis == ERRORS:
        return _percent(task.error_rate)
    kinds = KINDS_OF_USERS.get(task.name, {})
    return next((name for name, user in kinds.items() if user == task.user), str(task.user))


def _percent(rate: float) -> str:
    return f"{100 * rate:g} %"


def _task(place: PanelEnvironment) -> Any:
    return make_dialogue(place.id, place.settings).task


# Where a policy fits


class Spaces(NamedTuple):
    """Observations and actions of an environment; equal ones let a policy play in both."""

    window: tuple[int, ...]
    actions: int
    tokenizer: Any

    def __str__(self) -> str:
        size = " x ".join(map(str, self.window))
        seen = f"{size} numbers" if self.tokenizer is None else f"windows of {size} tokens"
        return f"{seen}, {self.actions} actions"


def spaces_of(place: PanelEnvironment) -> Spaces:
    """Observations and actions of an environment."""
    return _spaces(place.id, json.dumps(dict(place.settings), sort_keys=True))


@cache
def _spaces(env_id: str, settings: str) -> Spaces:
    made = make_vec(entry_of(env_id), 1, autoreset_mode="Disabled", **json.loads(settings))
    env: Any = made.unwrapped
    seen = env.single_observation_space
    found = Spaces(seen.shape, int(env.single_action_space.n), getattr(seen, "tokenizer", None))
    env.close()
    return found


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
