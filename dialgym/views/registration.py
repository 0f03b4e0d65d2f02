"""Registration of ids in Gymnasium: those of envs_registry.yaml, and your own."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import gymnasium as gym
from gymnasium.envs.registration import parse_env_id

from dialgym.errors import check_arguments, finite_number, one_of
from dialgym.io.files import read_registry
from dialgym.io.objects import load
from dialgym.kinds import KINDS
from dialgym.registry import (
    MAKE_VIEW,
    NAMESPACE,
    RegistryEntry,
    Row,
    add,
    built_in,
    entries_of,
    entry_of,
    make_task,
)

MAKE_BATCHED_VIEW = "dialgym.views.making:make_batched_view"
RETURNS = ("random", "expert")
"""Scores that are returns."""
SCORES = (*RETURNS, "expert_policy", "episodes", "secrets", "seed")
"""All scores: those, and how they were measured."""


def register(
    id: str,
    task: Any,
    settings: Mapping[str, Any] | None = None,
    *,
    views: Sequence[str] | None = None,
    view_settings: Mapping[str, Mapping[str, Any]] | None = None,
    env_kwargs: Mapping[str, Any] | None = None,
    tags: Sequence[str] = (),
    description: str | None = None,
    scores: Mapping[str, Any] | None = None,
) -> list[str]:
    """Register your own task: an id for each view, in every tool and in Gymnasium.

    It lasts as long as the process. Call it in the module of the task, and
    ``gym.make("my_module:Guess-v0")`` and ``dialgym evaluate my_module:Guess-v0`` find it anywhere,
    worker processes too. A second registration of an id replaces the first.

    Args:
        id: of the token view: ``Guess-v0``, ``mylab/Guess-v0``; that of the utterance view is then
            ``Guess-utterance-v0``, that of the act view ``Guess-act-v0``.
        task: ``module:Class``, a subclass of `Task`, or a `Task`.
        settings: arguments of the task, unless the caller of ``gym.make`` says otherwise.
        views: of ``token``, ``utterance`` and ``act``; None for all that the task has, which makes
            it once to see; else nothing is imported before the id is used.
        view_settings: more arguments of the task, by view.
        env_kwargs: arguments of the views: ``{"learner": "user"}``.
        tags: for `list_ids`.
        description: one sentence; None for the first line of the class's docstring, where the
            class is at hand.
        scores: reference returns (``{"random": -5.0, "expert": -1.0, "expert_policy": "optimal"}``)
            for normalised scores.

    Returns:
        The ids.

    Raises:
        ValueError: the id is impossible or one of dialgym's own, an argument is impossible, or the
            task cannot be made.
    """
    if not isinstance(id, str) or ":" in id:  # of which Gymnasium would import the part before it
        raise ValueError(f"register: expected an id such as Guess-v0 or mylab/Guess-v0; got {id!r}")
    mappings = {"settings": settings, "view_settings": view_settings, "env_kwargs": env_kwargs}
    _check_kinds(id, tags, {**mappings, "scores": scores})
    _check_scores(id, scores or {})
    namespace, name, version = parse_env_id(id)
    row = Row(
        name,
        task,
        description or "",
        version,
        dict(settings or {}),
        tuple(views or KINDS),
        dict(view_settings or {}),
        dict(env_kwargs or {}),
        tuple(tags),
        dict(scores or {}),
        namespace=namespace,
    )
    row = _completed(row, look=views is None)
    _check_ids(id, row)
    _check_view_arguments(id, row)
    for entry in entries_of(row):
        add(entry)
        gym.registry.pop(entry.id, None)  # or Gymnasium warns of what is meant
        gym.register(**spec_fields(entry, entry))
    return [row.id(view) for view in row.views]


def _check_kinds(id: str, tags: Any, mappings: Mapping[str, Any]) -> None:
    for name, given in mappings.items():
        if not isinstance(given or {}, Mapping):
            raise ValueError(
                f"{name} of {id}: expected a mapping of names to values; got {given!r}"
            )
    if isinstance(tags, str):
        raise ValueError(f"tags of {id}: expected a sequence of names; got {tags!r}")


def _check_scores(id: str, scores: Mapping[str, Any]) -> None:
    for name, value in scores.items():
        one_of("scores", name, SCORES, id)
        if name in RETURNS:
            finite_number(f"{name} in scores of {id}", value)


def _check_view_arguments(id: str, row: Row) -> None:
    for view in row.view_settings:
        one_of("view_settings", view, KINDS, id)
    if row.env_kwargs:
        paths = [path for view in row.views for path in (KINDS[view].single, KINDS[view].vector)]
        known = {name for path in paths for name in load(path).arguments()}
        check_arguments(row.env_kwargs, known, f"env_kwargs of {id}")


def _completed(row: Row, look: bool) -> Row:
    """Complete a row by the facts of its task: its views and its description."""
    if isinstance(row.task, str) and not look:
        return replace(row, description=row.description or row.task)
    base = entry_of(row.task).row
    row = replace(row, task=base.task, settings={**base.settings, **row.settings})
    if look:
        task = make_task(RegistryEntry(row.name, row, "token"), {})
        row = replace(
            row, views=tuple(v for v, kind in KINDS.items() if task.acts or not kind.of_acts)
        )
    return replace(row, description=row.description or base.description)


def _check_ids(id: str, row: Row) -> None:
    for suffix in [kind.suffix for kind in KINDS.values() if kind.suffix]:
        if row.name.endswith(suffix):
            raise ValueError(
                f"register: expected the id of the token view, such as "
                f"{row.name.removesuffix(suffix)}-v0; got {id!r}. Those of the others follow."
            )
    for view in row.views:
        one_of("views", view, KINDS, id)
        taken = {row.id(view), f"{NAMESPACE}/{row.id(view)}"}.intersection(built_in())
        if taken:
            raise ValueError(f"register: {taken.pop()!r} is dialgym's own. Choose another id.")


def register_all() -> None:
    """Register every id of envs_registry.yaml with Gymnasium. Loads no task and no view."""
    for entry in built_in().values():
        gym.register(**spec_fields(entry, entry.id))
    for env_id in read_registry().get("removed") or {}:
        gym.register(env_id, MAKE_VIEW, kwargs={"env_id": env_id})


def spec_fields(entry: RegistryEntry, env_id: str | RegistryEntry) -> dict[str, Any]:
    """Fields of an entry's `EnvSpec`; `env_id` finds the entry again.

    It is the entry itself where other processes may not know the id.
    """
    return {
        "id": re.sub(r":?//", ".", entry.id),  # Gymnasium's ids hold no address
        "entry_point": MAKE_VIEW,
        "vector_entry_point": MAKE_BATCHED_VIEW,
        "disable_env_checker": True,  # the tests run the checker on every id
        "order_enforce": False,  # the views say it themselves
        "reward_threshold": None if entry.row.builtin_scores else entry.row.expert(None),
        "kwargs": {"env_id": env_id},
    }
