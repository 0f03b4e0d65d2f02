"""Recipes: methods, seeds and tables of an experiment, read from the YAML files of this folder."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from dialgym.errors import unknown
from dialgym.io.files import read_yaml
from dialgym.io.strict_reader import StrictReader

HOME = Path(__file__).parent
Values = Mapping[str, Any]


@dataclass(frozen=True)
class Dialogues:
    """Stored dialogues, collected once for each seed.

    Attributes:
        policy: or generator that holds them.
        episodes: how many.
        policy_kwargs: settings of the policy.
        settings: of the env, over those of the recipe.
        seed: of the first, the same for all trainings; by default that of the training.
    """

    policy: str
    episodes: int
    policy_kwargs: Values = field(default_factory=dict)
    settings: Values = field(default_factory=dict)
    seed: int | None = None


@dataclass(frozen=True)
class Method:
    """A line of the table.

    ``@NAME`` in settings, in hyperparameters or as the policy stands for the model of one of the
    methods that it needs.

    Attributes:
        name: of the line.
        environment: an id.
        settings: of the environment.
        policy: one that is scored, and nothing is trained: a registered name, a mapping of it and
            its settings, or ``module:function`` that makes it, called with the job.
        algorithm: by which it is trained.
        learner: ``PANEL/LEARNER``: it is that of a panel, trained where the panel trains it.
        hyperparameters: other than the configured ones.
        fields: further fields of `agents.TrainConfig`.
        data: stored dialogues that it learns from.
        start: the method whose model it begins with.
        needs: further methods that stand before it; ``NAME+1`` is that of the next seed.
        actions: it is scored with ``drawn`` or ``greedy`` actions.
        train: ``module:function`` that trains in place of the algorithm, called with the job.
        measure: ``module:function`` that makes further figures of the job and its episodes.
        hidden: it has no rows: others build on it.
    """

    name: str
    environment: str
    settings: Values = field(default_factory=dict)
    policy: str | Values | None = None
    algorithm: str | None = None
    learner: str | None = None
    hyperparameters: Values = field(default_factory=dict)
    fields: Values = field(default_factory=dict)
    data: str | None = None
    start: str | None = None
    needs: tuple[str, ...] = ()
    actions: str = "drawn"
    train: str | None = None
    measure: str | None = None
    hidden: bool = False


@dataclass(frozen=True)
class Recipe:
    """Methods, all trained and scored with several seeds, and the table of their scores.

    Attributes:
        name: of the file.
        episodes: of each seed.
        columns: by title; see `benchmarks.recipes.tables`.
        note: what stands below the table.
        methods: by name, each after those that it builds on.
        data: stored dialogues by name.
        options: values that its hooks read.
        pictured: titles of the measured figures that a picture shows beside the return, by name.
    """

    name: str
    episodes: int
    columns: Mapping[str, Any]
    note: str
    methods: Mapping[str, Method]
    data: Mapping[str, Dialogues]
    options: Values = field(default_factory=dict)
    pictured: Mapping[str, str] = field(default_factory=dict)


GROUP = ("prefix", "environment", "settings", "data", "methods")
OWN = ("episodes", "columns", "note", "options", "pictured")


def names() -> list[str]:
    """The recipes of this folder."""
    return sorted(file.stem for file in HOME.glob("*.yaml"))


def read_recipe(name: str) -> Recipe:
    """Read a recipe.

    Raises:
        ValueError: there is none of that name.
    """
    if name not in names():
        raise unknown("recipe", name, names())
    values = read_yaml(HOME / f"{name}.yaml")
    row = StrictReader(f"recipe {name!r}", values, ["shared", "groups", *OWN, *GROUP])
    methods: dict[str, Method] = {}
    data: dict[str, Dialogues] = {}
    common = {key: values[key] for key in GROUP if key in values}
    for group in values.get("groups", [{}]):
        _add_group(row.where, {**common, **group}, methods, data)
    own = {key: values[key] for key in OWN if key in values}
    return Recipe(name=name, methods=methods, data=data, **own)


def _add_group(
    where: str, group: Values, methods: dict[str, Method], data: dict[str, Dialogues]
) -> None:
    """Methods and data of a group, whose names get its prefix."""
    prefix = group.get("prefix", "")
    for name, value in group.get("data", {}).items():
        data[prefix + name] = _made(Dialogues, f"{where}, data, {name}", value)
    for name, value in group["methods"].items():
        row = {key: group[key] for key in ("environment",) if key in group} | value
        row["settings"] = {**group.get("settings", {}), **value.get("settings", {})}
        row |= {key: prefix + row[key] for key in ("data", "start") if key in row}
        row["needs"] = tuple(row.get("needs", ()))
        methods[prefix + name] = _made(Method, f"{where}, {name}", row, name=prefix + name)


def _made(kind: Any, where: str, values: Any, **more: Any) -> Any:
    """A dataclass of plain values.

    Raises:
        ValueError: an entry is unknown.
    """
    StrictReader(where, values, [one.name for one in fields(kind)])
    return kind(**more, **values)


def slug(name: str) -> str:
    """A name as that of a folder."""
    return re.sub(r"[^\w.]+", "-", name).strip("-")
