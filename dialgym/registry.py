"""The registry of ids: from an id, or what stands for one, to its task and views.

An id, a `Task` object, a subclass of `Task` and ``module:Class`` are interchangeable wherever one
is asked for; `entry_of` takes them all.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cache, lru_cache
from inspect import getdoc, isclass, signature
from typing import TYPE_CHECKING, Any, Self

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec

from dialgym.errors import one_of, unexpected, unknown
from dialgym.kinds import KINDS, ViewKind
from dialgym.rows import NAMESPACE, Row, environment_rows, load, read_registry, row_of
from dialgym.trust import distrusted, is_said, say

if TYPE_CHECKING:
    from dialgym.tasks.base import Task

MAKE_VIEW = "dialgym.views.making:make_view"


@dataclass(frozen=True)
class Entry:
    """An id: a row in one view."""

    id: str
    row: Row
    view: str

    @property
    def kind(self) -> ViewKind:
        """The kind of the view."""
        return KINDS[self.view]

    @property
    def stand_in(self) -> str | None:
        """What is played here in place of what the settings name, if anything: `Task.stand_in`."""
        found: str | None = make_task(self, {}).stand_in
        return found

    @property
    def label(self) -> str:
        """The id, and in brackets what stands in for it."""
        return f"{self.id} ({self.stand_in})" if self.stand_in else self.id

    def in_view(self, view: str) -> "Entry":
        """The same row in another view, registered or not.

        Raises:
            ValueError: there is no such view.
        """
        one_of("view", view, KINDS, self.id)
        return Entry(self.row.id(view), self.row, view)

    def __deepcopy__(self, memo: Any) -> Self:
        """Itself; see `Row`."""
        return self


if TYPE_CHECKING:
    Environment = str | Task | type[Task] | Entry | EnvSpec
else:
    Environment = Any  # tasks are imported when one is asked for, not by `import dialgym`
"""What stands for an environment: an id, a task, ``module:Class``, an entry, a spec."""

_added: dict[str, Entry] = {}


@cache
def built_in() -> Mapping[str, Entry]:
    """The ids of envs_registry.yaml, in its order."""
    return {entry.id: entry for row in environment_rows() for entry in entries_of(row)}


def entries_of(row: Row) -> list[Entry]:
    """The ids of a row, one for each of its views."""
    return [Entry(row.id(view), row, view) for view in row.views]


def add(entry: Entry) -> None:
    """Let an id be found until the process ends; see `dialgym.register`."""
    _added[entry.id] = entry


def check_id(env_id: str, where: str) -> None:
    """Look at an id that was read from a file: nothing is imported for it.

    Raises:
        ValueError: it is not registered, nor a task that a caller has named in this process.
    """
    if is_registered(env_id):
        return
    short = env_id.removeprefix(f"{NAMESPACE}:")
    if ":" not in env_id:
        raise _unknown_id(env_id, short if "/" in short else f"{NAMESPACE}/{short}")
    suffixes = [kind.suffix for kind in KINDS.values()]
    if not any(is_said(short.removesuffix(suffix)) for suffix in suffixes):
        raise distrusted(env_id, where)


def is_registered(env_id: str) -> bool:
    """Tell whether an id is known in this process; nothing is imported for it."""
    short = env_id.removeprefix(f"{NAMESPACE}:")
    return bool({short, f"{NAMESPACE}/{short}"} & {*entries(), *gym.registry})


def entries() -> Mapping[str, Entry]:
    """All ids: those of envs_registry.yaml in its order, then those of `register`."""
    return {**built_in(), **_added}


def list_ids(
    tag: str | None = None, *, task: str | None = None, view: str | None = None
) -> list[str]:
    """The ids of all environments, or of those that are asked for.

    Args:
        tag: that the environment has; the name of a view counts as one.
        task: its task, such as ``Wordle`` or ``slot-filling``.
        view: ``token``, ``utterance`` or ``act``.

    Raises:
        ValueError: no environment has the tag, the task or the view.
    """
    found = list(entries().values())
    if tag is not None:
        found = _those("tag", tag, found, lambda e: (*e.row.tags, e.view))
    if task is not None:
        found = _those("task", task, found, lambda e: (task_name(e),))
    if view is not None:
        found = _those("view", view, found, lambda e: (e.view,))
    return [entry.id for entry in found]


def task_name(entry: Entry) -> str:
    """The name of an entry's task, as `list_ids` takes it: ``slot-filling``, ``MyTask``."""
    task = entry.row.task
    kind = task if isclass(task) else type(task)
    home = task if isinstance(task, str) else f"{kind.__module__}:{kind.__qualname__}"
    if found := re.match(r"dialgym\.tasks\.(\w+)", home):
        return found[1].replace("_", "-")
    return home.rpartition(":")[2]


def _bare(name: str) -> str:
    """Without case and hyphens."""
    return re.sub(r"[-_ ]", "", name).lower()


def _those(
    what: str, wanted: str, among: Sequence[Entry], names_of: Callable[[Entry], Sequence[str]]
) -> list[Entry]:
    found = [entry for entry in among if _bare(wanted) in map(_bare, names_of(entry))]
    if not found:
        raise unknown(what, wanted, {name for entry in among for name in names_of(entry)})
    return found


def suites() -> Mapping[str, tuple[str, ...]]:
    """Sets of ids that belong together, by name; see envs_registry.yaml."""
    return {name: tuple(ids) for name, ids in read_registry()["suites"].items()}


def entry_of(target: Environment) -> Entry:
    """The entry of an id, or of what is given in the place of one.

    Args:
        target: an id, with or without the leading ``dialgym/``, also one of ``gym.register`` with
            a view of dialgym as its entry point; ``module:id`` for an id that the module
            registers; a `Task`, its class, or ``module:Class``, for its token view
            (``module:Class-utterance`` and ``module:Class-act`` for the others); an `EnvSpec`; an
            `Entry`, which is returned.

    Raises:
        ValueError: there is no such id, module or class, or it is no task; the message names the
            nearest.
    """
    if isinstance(target, Entry):
        return target
    if isinstance(target, str):
        return _entry_named(target)
    if isinstance(target, EnvSpec):
        return _entry_of_spec(target)
    if isinstance(target, Mapping):  # an entry in a spec that was written as JSON
        return Entry(target["id"], row_of(target["row"]), target["view"])
    return entries_of(_row_of_task(target))[0]


def _entry_named(name: str) -> Entry:
    short = name.removeprefix(f"{NAMESPACE}:")
    known = entries()
    for full in (short, f"{NAMESPACE}/{short}"):
        if full in known:
            return known[full]
    if ":" in short:
        return _entry_in_module(short)
    if short in gym.registry:
        return _entry_of_spec(gym.registry[short])
    raise _unknown_id(name, short if "/" in short else f"{NAMESPACE}/{short}")


def _unknown_id(name: str, full: str) -> ValueError:
    removed = read_registry().get("removed") or {}
    if full in removed:
        return ValueError(f"environment {full!r} was removed: {removed[full]}")
    return ValueError(
        f"unknown environment id {name!r}.{_nearest(full)} `dialgym list` shows all ids."
    )


def _nearest(name: str) -> str:
    """The id that is meant, but for its version, case and hyphens; else the most alike."""

    def short(env_id: str) -> str:
        return _bare(re.sub(r"-v\d+$", "", env_id.rpartition("/")[2]))

    ids = {short(env_id): env_id for env_id in reversed([*entries()])}
    close = get_close_matches(short(name), ids, n=1)
    return f" Did you mean {ids[close[0]]!r}?" if close else ""


def _entry_in_module(path: str) -> Entry:
    """The entry of ``module:id`` or ``module:Class``, the latter with a view's suffix or not."""
    from dialgym.tasks.lookup import find_task, import_for

    module, _, name = path.partition(":")
    say(path)
    if "/" in name or re.search(r"-v\d+$", name):
        import_for(module, path)
        return _entry_named(name)
    suffixes = {kind.suffix: view for view, kind in KINDS.items()}
    found = max((suffix for suffix in suffixes if name.endswith(suffix)), key=len)
    path = path.removesuffix(found)
    row = replace(_row_of_task(find_task(path)), name=path, task=path)
    return Entry(row.id(suffixes[found]), row, suffixes[found])


def _row_of_task(task: Any) -> Row:
    """The row of a task, or of its class, that nobody has registered."""
    from dialgym.tasks.lookup import is_found, require_task

    require_task(task, "environment")
    kind = task if isclass(task) else type(task)
    path = f"{kind.__module__}:{kind.__qualname__}"
    about = (getdoc(kind) or kind.__name__).splitlines()[0]
    name = path.replace("<locals>.", "")  # Gymnasium allows no brackets in an id
    say(name)
    if isclass(task):
        return Row(name, path if is_found(kind) else task, about, None, namespace=None)
    return Row(name, task, about, None, task.made_with or {}, namespace=None)


def _entry_of_spec(spec: EnvSpec) -> Entry:
    """The entry of what Gymnasium knows with one of our entry points.

    Raises:
        ValueError: it is of another entry point, or wraps or cuts what that makes.
    """
    kwargs, point = dict(spec.kwargs), path_of(spec.entry_point)
    of_view = {p: view for view, k in KINDS.items() for p in (k.single, k.vector)}
    if point == MAKE_VIEW:
        entry = entry_of(kwargs.pop("env_id"))
        row, view = entry.row, entry.view
    elif point in of_view and "task" in kwargs:
        row, view = entry_of(kwargs.pop("task")).row, of_view[point]
    else:
        raise ValueError(
            f"environment {spec.id!r}: expected an entry point of dialgym with a task; got "
            f"{point}. Register the task with dialgym.register, or give it itself."
        )
    if spec.additional_wrappers:
        raise ValueError(
            f"environment {spec.id!r}: what plays many dialogues at once cannot apply its wrappers "
            f"({', '.join(w.name for w in spec.additional_wrappers)}). Register it without them."
        )
    names = load(KINDS[view].single).arguments()
    own = {name: value for name, value in kwargs.items() if name in names}
    rest = {name: value for name, value in kwargs.items() if name not in names}
    row = replace(row, settings={**row.settings, **rest}, env_kwargs={**row.env_kwargs, **own})
    return Entry(spec.id, row, view)


def path_of(entry_point: Any) -> str:
    """An entry point as ``module:name``."""
    if isinstance(entry_point, str):
        return entry_point
    module, name = (getattr(entry_point, n, "") for n in ("__module__", "__qualname__"))
    return f"{module}:{name}" if name else repr(entry_point)


def settings_beside(entry: Entry) -> dict[str, Any]:
    """What its id leaves open of an entry: the settings of a task that nobody has registered."""
    if entry.id in entries() or entry.id in gym.registry:
        return {}
    return {**entry.row.settings, **entry.row.env_kwargs}


def check_portable(entry: Entry, kwargs: Mapping[str, Any]) -> None:
    """Raise a ValueError where other processes could not import what an env is made of.

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


def make_task(entry: Entry, settings: Mapping[str, Any], also_known: Any = ()) -> Any:
    """The task of an entry with the settings of row and view, overridden by `settings`."""
    from dialgym.tasks.lookup import find_task

    row = entry.row
    task: Any = find_task(row.task) if isinstance(row.task, str) else row.task
    kind: Any = task if isclass(task) else type(task)
    known = list(signature(kind).parameters)
    merged = {**row.settings, **row.view_settings.get(entry.view, {}), **settings}
    for name in merged:
        if name not in known:
            raise unexpected(name, [*also_known, *known], entry.id)
    if task is not kind:
        return task if merged == (task.made_with or {}) else _changed(task, merged, entry.id)
    # By type as well: 6.0 equals 6, and may be refused where that is not.
    typed = tuple((name, type(value), value) for name, value in sorted(merged.items()))
    if not _is_hashable(typed):  # such as a list of words
        return kind(**merged)
    return _shared_task(kind, kind.surroundings(merged), typed)


def _is_hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _changed(task: Any, settings: Mapping[str, Any], name: str) -> Any:
    """A task like `task`, which was given as an object, with other settings."""
    if task.made_with is None:
        raise ValueError(
            f"settings of {name}: a task that was made with arguments without a name cannot be "
            f"made again with {dict(settings)!r}. Give a task that has the settings already."
        )
    return type(task)(**settings)


@lru_cache(maxsize=32)
def _shared_task(task: Any, surroundings: Any, settings: tuple[tuple[str, type, Any], ...]) -> Any:
    return task(**{name: value for name, _, value in settings})
