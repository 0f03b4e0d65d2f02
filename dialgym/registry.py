"""envs_registry.yaml to Gymnasium's registry, and from a row to a task and its views."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib import import_module
from importlib.resources import files
from inspect import signature
from pathlib import Path
from typing import Any

import gymnasium as gym
import yaml

from dialgym.errors import did_you_mean, unexpected, unknown

NAMESPACE = "dialgym"
VIEWS = {
    "token": (
        "",
        "dialgym.views.token_env:TokenEnv",
        "dialgym.views.token_vector_env:TokenVectorEnv",
    ),
    "utterance": (
        "-utterance",
        "dialgym.views.utterance_env:UtteranceEnv",
        "dialgym.views.utterance_vector_env:UtteranceVectorEnv",
    ),
    "act": (
        "-act",
        "dialgym.views.act_env:ActEnv",
        "dialgym.views.act_vector_env:ActVectorEnv",
    ),
}


@dataclass(frozen=True)
class Row:
    """One row of envs_registry.yaml."""

    name: str
    task: str
    description: str
    version: int = 0
    settings: Mapping[str, Any] = field(default_factory=dict)
    views: tuple[str, ...] = ("token", "utterance")
    view_settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    scores: Mapping[str, Any] = field(default_factory=dict)
    builtin_scores: Mapping[str, Any] = field(default_factory=dict)

    def id(self, view: str = "token") -> str:
        """The Gymnasium id of a view."""
        return f"{NAMESPACE}/{self.name}{VIEWS[view][0]}-v{self.version}"

    def references(self, stand_in: str | None) -> Mapping[str, Any]:
        """The reference scores of what is played, which may be a task's `stand_in`."""
        return self.builtin_scores if stand_in else self.scores

    def expert(self, stand_in: str | None) -> float | None:
        """The expert's mean return at the row's settings, if there is one."""
        return self.references(stand_in).get("expert")


@dataclass(frozen=True)
class Entry:
    """An id: a row in one view."""

    id: str
    row: Row
    view: str

    @property
    def stand_in(self) -> str | None:
        """What is played here in place of what the settings name, if anything: `Task.stand_in`."""
        found: str | None = make_task(self, {}).stand_in
        return found

    @property
    def label(self) -> str:
        """The id, and in brackets what stands in for it."""
        return f"{self.id} ({self.stand_in})" if self.stand_in else self.id


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
def reward_rows() -> Mapping[str, RewardRow]:
    """The rewards of language by name, in the order of the registry."""
    rows = read_registry().get("rewards") or {}
    return {name: RewardRow(name, **values) for name, values in rows.items()}


@cache
def entries() -> Mapping[str, Entry]:
    """All ids, in the order of the registry."""
    return {entry.id: entry for entry in _read_entries()}


def _read_entries() -> Iterator[Entry]:
    for name, values in read_registry()["environments"].items():
        columns: dict[str, Any] = {
            k: tuple(v) if isinstance(v, list) else v for k, v in values.items()
        }
        row = Row(name, **columns)
        for view in row.views:
            yield Entry(row.id(view), row, view)


def entry_of(env_id: str) -> Entry:
    """The entry of an id, with or without the leading ``dialgym/``.

    Raises:
        ValueError: there is no such id; the message names the nearest.
    """
    full = env_id if "/" in env_id else f"{NAMESPACE}/{env_id}"
    full = full.removeprefix(f"{NAMESPACE}:")
    known = entries()
    if full in known:
        return known[full]
    removed = read_registry().get("removed") or {}
    if full in removed:
        raise ValueError(f"environment {full!r} was removed: {removed[full]}")
    hint = did_you_mean(full, known)
    raise ValueError(f"unknown environment id {env_id!r}.{hint} `dialgym list` shows all ids.")


def list_ids(tag: str | None = None) -> list[str]:
    """The ids of all environments, or of those with a tag.

    Raises:
        ValueError: no environment has the tag.
    """
    if tag is None:
        return list(entries())
    tags = {t for entry in entries().values() for t in (*entry.row.tags, entry.view)}
    if tag not in tags:
        raise unknown("tag", tag, tags)
    return [e.id for e in entries().values() if tag in (*e.row.tags, e.view)]


def register_all() -> None:
    """Make every id known to Gymnasium. Loads no task and no view."""
    for entry in entries().values():
        gym.register(
            entry.id,
            entry_point="dialgym.registry:make_view",
            vector_entry_point="dialgym.registry:make_batched_view",
            disable_env_checker=True,  # the tests run the checker on every id
            order_enforce=False,  # the views say it themselves
            reward_threshold=None if entry.row.builtin_scores else entry.row.expert(None),
            kwargs={"env_id": entry.id},
        )
    for env_id in read_registry().get("removed") or {}:
        gym.register(env_id, "dialgym.registry:make_view", kwargs={"env_id": env_id})


def make_view(env_id: str, **kwargs: Any) -> gym.Env:
    """The single env of an id; `kwargs` are arguments of the view or settings of the task."""
    entry = entry_of(env_id)
    view = load(VIEWS[entry.view][1])
    return view(**split_kwargs(entry, view, kwargs))


def make_batched_view(
    env_id: str, num_envs: int = 1, workers: int = 0, **kwargs: Any
) -> gym.vector.VectorEnv:
    """The batched env of an id, `num_envs` dialogues in this process, or over `workers` others.

    Raises:
        ValueError: a render mode, or workers for a view that has none; an unknown id or argument.
    """
    entry = entry_of(env_id)
    view = load(VIEWS[entry.view][2])
    render_mode = kwargs.pop("render_mode", None)  # wrappers of Gymnasium ask for it by name
    if render_mode is not None:
        raise ValueError(
            f"render_mode of {entry.id}: expected None, as a batch of dialogues draws no pictures; "
            f"got {render_mode!r}. Use vectorization_mode='sync', or a single env."
        )
    if workers:
        if entry.view != "token":
            raise ValueError(
                f"workers: only token views can be sharded over processes; got {entry.id!r}. "
                f"Use {entry.row.id('token')!r}, or workers=0."
            )
        sharded = load("dialgym.views.shards:ShardedTokenVectorEnv")
        return sharded({"env_id": env_id, **kwargs}, num_envs, workers)
    return view(num_envs=num_envs, **split_kwargs(entry, view, kwargs))


def split_kwargs(entry: Entry, view: Any, kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The view's own arguments, and `task` made from all the others.

    Raises:
        ValueError: an argument is neither the view's nor the task's.
    """
    names = [name for name in signature(view).parameters if name not in ("task", "num_envs")]
    settings = {key: value for key, value in kwargs.items() if key not in names}
    own = {key: value for key, value in kwargs.items() if key in names}
    return {"task": make_task(entry, settings, names), **own}


def make_task(entry: Entry, settings: Mapping[str, Any], also_known: Any = ()) -> Any:
    """The task of an entry with the settings of row and view, overridden by `settings`."""
    task = load(entry.row.task)
    known = list(signature(task).parameters)
    for name in settings:
        if name not in known:
            raise unexpected(name, [*also_known, *known], entry.id)
    own = entry.row.view_settings.get(entry.view, {})
    merged = {**entry.row.settings, **own, **settings}
    try:
        return _shared_task(task, task.surroundings(merged), tuple(sorted(merged.items())))
    except TypeError:  # a setting that cannot be hashed, such as a list of words
        return task(**merged)


@lru_cache(maxsize=32)
def _shared_task(task: Any, surroundings: Any, settings: tuple[tuple[str, Any], ...]) -> Any:
    return task(**dict(settings))


def load(path: str) -> Any:
    """The object at ``module:name``."""
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)
