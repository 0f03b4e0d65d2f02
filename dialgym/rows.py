"""The rows of envs_registry.yaml as data: environments and rewards."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import Any, Self

import yaml

from dialgym.kinds import KINDS

NAMESPACE = "dialgym"


@dataclass(frozen=True)
class Row:
    """A task with settings, in several views: a row of envs_registry.yaml, or one registered.

    Attributes:
        name: of the row; ids are made of it, see `id`.
        task: ``module:Class``; also a class or an object, where it was given as such.
        description: one sentence.
        version: the N of ``-vN``; None for ids without one.
        settings: arguments of the task.
        views: those that are registered.
        view_settings: arguments of the task, by view, beside `settings`.
        env_kwargs: arguments of the views (``learner``, ``tokenizer``).
        tags: for `list_ids`.
        scores: reference returns at these settings.
        builtin_scores: the same where something built in stands in for what is named, such as a
            domain or a corpus.
        namespace: before the slash of its ids; None for ids without one.
    """

    name: str
    task: Any
    description: str
    version: int | None = 0
    settings: Mapping[str, Any] = field(default_factory=dict)
    views: tuple[str, ...] = ("token", "utterance")
    view_settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    env_kwargs: Mapping[str, Any] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    scores: Mapping[str, Any] = field(default_factory=dict)
    builtin_scores: Mapping[str, Any] = field(default_factory=dict)
    namespace: str | None = NAMESPACE

    def id(self, view: str = "token") -> str:
        """The Gymnasium id of a view."""
        space = f"{self.namespace}/" if self.namespace else ""
        version = "" if self.version is None else f"-v{self.version}"
        return f"{space}{self.name}{KINDS[view].suffix}{version}"

    def references(self, stand_in: str | None) -> Mapping[str, Any]:
        """The reference scores of what is played, which may be a task's `stand_in`."""
        return self.builtin_scores if stand_in else self.scores

    @property
    def expert_policy(self) -> str | None:
        """The name of the expert, if there is one."""
        return self.scores.get("expert_policy") or self.builtin_scores.get("expert_policy")

    def expert(self, stand_in: str | None) -> float | None:
        """The expert's mean return at the row's settings, if there is one."""
        return self.references(stand_in).get("expert")

    def __deepcopy__(self, memo: Any) -> Self:
        """Itself: nothing in it changes, and ``gym.make`` copies what a spec holds."""
        return self


@dataclass(frozen=True)
class RewardRow:
    """One row of `rewards:` in envs_registry.yaml: a class, and settings of it."""

    name: str
    reward: str
    description: str
    settings: Mapping[str, Any] = field(default_factory=dict)


@cache
def read_registry() -> Mapping[str, Any]:
    """envs_registry.yaml: that inside the installed package, else that of the source tree."""
    inside = files("dialgym") / "envs_registry.yaml"
    path = inside if inside.is_file() else Path(__file__).parents[1] / "envs_registry.yaml"
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return yaml.load(path.read_text("utf-8"), Loader=loader)


@cache
def environment_rows() -> tuple[Row, ...]:
    """The environments, in the order of the registry."""
    rows = read_registry()["environments"].items()
    return tuple(row_of({"name": name, **columns}) for name, columns in rows)


def row_of(columns: Mapping[str, Any]) -> Row:
    """A row from plain values, with tuples in the place of lists."""
    values: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in columns.items()}
    return Row(**values)


@cache
def reward_rows() -> Mapping[str, RewardRow]:
    """The rewards of language by name, in the order of the registry."""
    rows = read_registry().get("rewards") or {}
    return {name: RewardRow(name, **values) for name, values in rows.items()}


def load(path: str) -> Any:
    """The object at ``module:name``."""
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)
