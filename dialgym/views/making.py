"""Making a single or a batched environment from an id or whatever stands for one."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from inspect import isclass
from typing import Any

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec

from dialgym.errors import whole_number
from dialgym.io.objects import load
from dialgym.kinds import numeric_kinds
from dialgym.registry import (
    MAKE_VIEW,
    Environment,
    RegistryEntry,
    entries,
    entry_of,
    make_task,
    path_of,
)
from dialgym.views.registration import MAKE_BATCHED_VIEW, spec_fields
from dialgym.views.render import METADATA


def spec_of(target: Environment) -> EnvSpec:
    """The spec that ``gym.make`` and ``gym.make_vec`` take, of an id or what stands for one."""
    entry = entry_of(target)
    # A spec, or the entry of one, has settings that what is registered by its id need not have.
    spec = target if isinstance(target, EnvSpec) else gym.registry.get(entry.id)
    if spec is None:
        return EnvSpec(**spec_fields(entry, entry))
    known = entries().get(entry.id, entry)
    changed = isinstance(target, RegistryEntry) and known.row is not entry.row
    if path_of(spec.entry_point) != MAKE_VIEW or changed:
        return EnvSpec(**spec_fields(entry, entry), max_episode_steps=spec.max_episode_steps)
    batched = spec.vector_entry_point  # an id of others may have none
    return spec if batched else replace(spec, vector_entry_point=MAKE_BATCHED_VIEW)


def make(id: Environment, **kwargs: Any) -> gym.Env:
    """``gym.make``, which also takes a `Task`, its class, or ``module:Class``; see `entry_of`."""
    return gym.make(spec_of(id), **kwargs)


def make_vec(id: Environment, num_envs: int = 1, **kwargs: Any) -> gym.vector.VectorEnv:
    """``gym.make_vec``, which also takes a `Task`, its class, or ``module:Class``."""
    return gym.make_vec(spec_of(id), num_envs, **kwargs)


def make_view(env_id: Environment, **kwargs: Any) -> gym.Env:
    """The single env of an id; `kwargs` are arguments of the view or settings of the task."""
    entry = entry_of(env_id)
    view = load(entry.kind.single)
    return view(**split_kwargs(entry, view, kwargs))


make_view.metadata = METADATA  # type: ignore[attr-defined]  # by which gym.make knows its modes


def make_batched_view(
    env_id: Environment, num_envs: int = 1, workers: int = 0, **kwargs: Any
) -> gym.vector.VectorEnv:
    """The batched env of an id, `num_envs` dialogues in this process, or over `workers` others.

    Raises:
        ValueError: a render mode, or workers for a view that has none; an unknown id or argument.
    """
    entry = entry_of(env_id)
    view = load(entry.kind.vector)
    render_mode = kwargs.pop("render_mode", None)  # which libraries give by name
    if render_mode is not None:
        raise ValueError(
            f"render_mode of {entry.id}: expected None, as a batch of dialogues draws no pictures; "
            f"got {render_mode!r}. Use vectorization_mode='sync', or a single env."
        )
    if whole_number("workers", workers, entry.id, 0):
        if not entry.kind.numeric:
            raise ValueError(
                f"workers: {numeric_kinds()} views can be sharded over processes; got "
                f"{entry.id!r}. Use {entry.row.id('token')!r}, or workers=0."
            )
        check_portable(entry, kwargs)
        sharded = load("dialgym.parallel.shards:ShardedVectorEnv")
        return sharded({"env_id": entry, **kwargs}, num_envs, workers)
    return view(num_envs=num_envs, **split_kwargs(entry, view, kwargs))


def settings_of_entry(entry: RegistryEntry) -> dict[str, Any]:
    """All settings that an entry has of the task and of the view."""
    row = entry.row
    return {**row.settings, **row.view_settings.get(entry.view, {}), **row.env_kwargs}


def split_kwargs(entry: RegistryEntry, view: Any, kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The view's own arguments, and `task` made from all the others.

    Raises:
        ValueError: an argument is neither the view's nor the task's.
    """
    names = view.arguments()
    settings = {key: value for key, value in kwargs.items() if key not in names}
    given = {**entry.row.env_kwargs, **kwargs}
    own = {key: value for key, value in given.items() if key in names}
    return {"task": make_task(entry, settings, names), **own}


def check_portable(entry: RegistryEntry, kwargs: Mapping[str, Any]) -> None:
    """Raise a ValueError if worker processes could not import the parts of an environment.

    Args:
        entry: whose task it is of.
        kwargs: settings of the task and the view, which may name a simulator.
    """
    task = entry.row.task
    kind = task if isclass(task) else type(task)
    named = {task if isinstance(task, str) else _home(kind): f"the task of {entry.id!r}"}
    for key, value in kwargs.items():
        named |= dict.fromkeys(_homes(value), f"{key}=")
    for path, what in named.items():
        local = ":" in path and ("<locals>" in path or "<lambda>" in path)
        if path.startswith("__main__:") or local:
            raise ValueError(
                f"workers: other processes cannot import {path}, {what}. Put it into a module of "
                "its own, at the top level, or use workers=0."
            )


def _homes(value: Any) -> Iterator[str]:
    """Modules from which the parts of a setting are imported: classes, functions, names."""
    if isinstance(value, Mapping):
        for part in value.values():
            yield from _homes(part)
    elif isinstance(value, str):
        yield value
    else:
        yield _home(value if hasattr(value, "__qualname__") else type(value))


def _home(kind: Any) -> str:
    return f"{kind.__module__}:{kind.__qualname__}"
