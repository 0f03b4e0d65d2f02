"""Registry of ids: rows of settings, lookup of ids and tasks.

An id, a `Task` object, a subclass of `Task` and ``module:Class`` are interchangeable wherever one
is asked for; `entry_of` takes them all.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cache, lru_cache
from inspect import getdoc, isclass, signature
from typing import TYPE_CHECKING, Any, Self

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec

from dialgym.errors import one_of, unexpected, unknown
from dialgym.io.files import read_registry
from dialgym.io.objects import import_for, is_found, load, without_module
from dialgym.kinds import KINDS, ViewKind
from dialgym.trust import allow, distrusted, is_allowed

if TYPE_CHECKING:
    from dialgym.tasks.base import Task

NAMESPACE = "dialgym"
MAKE_VIEW = "dialgym.views.making:make_view"


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

    @property
    def expert_name(self) -> str:
        """The name of the expert; ``optimal`` where the scores name none."""
        return self.expert_policy or "optimal"

    def expert(self, stand_in: str | None) -> float | None:
        """The expert's mean return at the row's settings, if there is one."""
        return self.references(stand_in).get("expert")

    def __deepcopy__(self, memo: Any) -> Self:
        """Itself: nothing in it changes, and ``gym.make`` copies what a spec holds."""
        return self


@dataclass(frozen=True)
class RegistryEntry:
    """An id: a row in one view."""

    id: str
    row: Row
    view: str

    @property
    def kind(self) -> ViewKind:
        """Kind of the view."""
        return KINDS[self.view]

    @property
    def stand_in(self) -> str | None:
        """Name of the built-in data played in place of what the settings name, or None."""
        stand_in: str | None = make_task(self, {}).stand_in
        return stand_in

    @property
    def label(self) -> str:
        """The id, with its stand-in in brackets."""
        return f"{self.id} ({self.stand_in})" if self.stand_in else self.id

    def in_view(self, view: str) -> "RegistryEntry":
        """The same row in another view, registered or not.

        Raises:
            ValueError: there is no such view.
        """
        one_of("view", view, KINDS, self.id)
        return RegistryEntry(self.row.id(view), self.row, view)


if TYPE_CHECKING:
    Environment = str | Task | type[Task] | RegistryEntry | EnvSpec
else:
    Environment = Any  # tasks are imported when one is asked for, not by `import dialgym`
"""An environment: an id, a task, ``module:Class``, an entry, a spec."""

_added: dict[str, RegistryEntry] = {}


def row_of(columns: Mapping[str, Any]) -> Row:
    """A row from plain values, with tuples in the place of lists."""
    values: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in columns.items()}
    return Row(**values)


@cache
def built_in() -> Mapping[str, RegistryEntry]:
    """The ids of envs_registry.yaml, in its order."""
    rows = read_registry()["environments"].items()
    made = [row_of({"name": name, **columns}) for name, columns in rows]
    return {entry.id: entry for row in made for entry in entries_of(row)}


def entries_of(row: Row) -> list[RegistryEntry]:
    """The ids of a row, one for each of its views."""
    return [RegistryEntry(row.id(view), row, view) for view in row.views]


def add(entry: RegistryEntry) -> None:
    """Add an id until the process ends; see `dialgym.register`."""
    _added[entry.id] = entry


def check_id(env_id: str, where: str) -> None:
    """Refuse an id of a file that is unknown here. Nothing is imported for it.

    Raises:
        ValueError: it is not registered, nor a task that a caller has allowed in this process.
    """
    if is_registered(env_id):
        return
    short = env_id.removeprefix(f"{NAMESPACE}:")
    if ":" not in env_id:
        raise _unknown_id(env_id, short if "/" in short else f"{NAMESPACE}/{short}")
    suffixes = [kind.suffix for kind in KINDS.values()]
    if not any(is_allowed(short.removesuffix(suffix)) for suffix in suffixes):
        raise distrusted(env_id, where)


def is_registered(env_id: str) -> bool:
    """Return True if an id is known in this process. Nothing is imported for it."""
    short = without_module(env_id.removeprefix(f"{NAMESPACE}:"), imported=True)
    return bool({short, f"{NAMESPACE}/{short}"} & {*entries(), *gym.registry})


def entries() -> Mapping[str, RegistryEntry]:
    """All ids: those of envs_registry.yaml in its order, then those of `register`."""
    return {**built_in(), **_added}


def list_ids(
    tag: str | None = None, *, task: str | None = None, view: str | None = None
) -> list[str]:
    """List the ids of all environments, or of those with a tag, task or view.

    Args:
        tag: that the environment has; the name of a view counts as one.
        task: its task, such as ``Wordle`` or ``slot-filling``.
        view: ``token``, ``utterance`` or ``act``.

    Raises:
        ValueError: no environment has the tag, the task or the view.
    """
    chosen = list(entries().values())
    if tag is not None:
        chosen = _those("tag", tag, chosen, lambda e: (*e.row.tags, e.view))
    if task is not None:
        chosen = _those("task", task, chosen, lambda e: (task_name(e),))
    if view is not None:
        chosen = _those("view", view, chosen, lambda e: (e.view,))
    return [entry.id for entry in chosen]


def task_name(entry: RegistryEntry) -> str:
    """The name of an entry's task, as `list_ids` takes it: ``slot-filling``, ``MyTask``."""
    task = entry.row.task
    kind = task if isclass(task) else type(task)
    home = task if isinstance(task, str) else f"{kind.__module__}:{kind.__qualname__}"
    if folder := re.match(r"dialgym\.tasks\.(\w+)", home):
        return folder[1].replace("_", "-")
    return home.rpartition(":")[2]


def _bare(name: str) -> str:
    """A name without case and hyphens."""
    return re.sub(r"[-_ ]", "", name).lower()


def _those(
    what: str,
    wanted: str,
    among: Sequence[RegistryEntry],
    names_of: Callable[[RegistryEntry], Sequence[str]],
) -> list[RegistryEntry]:
    fitting = [entry for entry in among if _bare(wanted) in map(_bare, names_of(entry))]
    if not fitting:
        raise unknown(what, wanted, {name for entry in among for name in names_of(entry)})
    return fitting


def entry_of(target: Environment) -> RegistryEntry:
    """Find the entry of an id, a task or a spec.

    Args:
        target: an id, with or without the leading ``dialgym/``, also one of ``gym.register`` with
            a view of dialgym as its entry point; ``module:id`` for an id that the module
            registers; a `Task`, its class, or ``module:Class``, for its token view
            (``module:Class-utterance`` and ``module:Class-act`` for the others); an `EnvSpec`; an
            `RegistryEntry`, which is returned.

    Raises:
        ValueError: there is no such id, module or class, or it is no task; the message names the
            nearest.
    """
    if isinstance(target, RegistryEntry):
        return target
    if isinstance(target, str):
        return _entry_named(target)
    if isinstance(target, EnvSpec):
        return _entry_of_spec(target)
    if isinstance(target, Mapping):  # an entry in a spec that was written as JSON
        return RegistryEntry(target["id"], row_of(target["row"]), target["view"])
    return entries_of(_row_of_task(target))[0]


def _entry_named(name: str) -> RegistryEntry:
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
    """Suggest the id that is equal but for version, case and hyphens, else the most alike."""

    def short(env_id: str) -> str:
        return _bare(re.sub(r"-v\d+$", "", env_id.rpartition("/")[2]))

    ids = {short(env_id): env_id for env_id in reversed([*entries()])}
    close = get_close_matches(short(name), ids, n=1)
    return f" Did you mean {ids[close[0]]!r}?" if close else ""


def _entry_in_module(path: str) -> RegistryEntry:
    """The entry of ``module:id`` or ``module:Class``, the latter with a view's suffix or not."""
    from dialgym.tasks.lookup import find_foreign, find_task

    module, name = path.partition(":")[0], without_module(path)
    allow(path)
    if foreign := find_foreign(path):
        kind, address = foreign
        row = Row(path, kind, f"An environment of {module}.", None, {"address": address})
        return RegistryEntry(path, replace(row, views=("utterance",), namespace=None), "utterance")
    if name != path:
        import_for(module, repr(path))
        return _entry_named(name)
    suffixes = {kind.suffix: view for view, kind in KINDS.items()}
    suffix = max((suffix for suffix in suffixes if path.endswith(suffix)), key=len)
    path = path.removesuffix(suffix)
    row = replace(_row_of_task(find_task(path)), name=path, task=path)
    return RegistryEntry(row.id(suffixes[suffix]), row, suffixes[suffix])


def _row_of_task(task: Any) -> Row:
    """The row of a task, or of its class, that nobody has registered."""
    from dialgym.tasks.lookup import require_task

    require_task(task, "environment")
    kind = task if isclass(task) else type(task)
    path = f"{kind.__module__}:{kind.__qualname__}"
    about = (getdoc(kind) or kind.__name__).splitlines()[0]
    name = path.replace("<locals>.", "")  # Gymnasium allows no brackets in an id
    allow(name)
    if isclass(task):
        return Row(name, path if is_found(kind) else task, about, None, namespace=None)
    return Row(name, task, about, None, task.made_with or {}, namespace=None)


def _entry_of_spec(spec: EnvSpec) -> RegistryEntry:
    """The entry of a spec whose entry point is one of ours; its limit of steps is for views alone.

    Raises:
        ValueError: it is of another entry point, or wraps what that makes.
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
    own = {name: kwargs.pop(name) for name in [*kwargs] if name in names}
    of_views = {**row.view_settings, view: {**row.view_settings.get(view, {}), **kwargs}}
    more: dict[str, Any] = {"settings": {**row.settings, **kwargs}, "view_settings": of_views}
    return RegistryEntry(spec.id, replace(row, **more, env_kwargs={**row.env_kwargs, **own}), view)


def path_of(entry_point: Any) -> str:
    """An entry point as ``module:name``."""
    if isinstance(entry_point, str):
        return entry_point
    module, name = (getattr(entry_point, n, "") for n in ("__module__", "__qualname__"))
    return f"{module}:{name}" if name else repr(entry_point)


def make_task(entry: RegistryEntry, settings: Mapping[str, Any], also_known: Any = ()) -> Any:
    """Make the task of an entry with the settings of row and view, overridden by `settings`."""
    from dialgym.tasks.lookup import find_task

    row = entry.row
    task: Any = find_task(row.task)
    kind: Any = task if isclass(task) else type(task)
    known = _parameters(kind)
    merged = {**row.settings, **row.view_settings.get(entry.view, {}), **settings}
    for name in merged:
        if name not in known:
            raise unexpected(name, [*also_known, *known], entry.id)
    if task is not kind:
        return task if merged == (task.made_with or {}) else _changed(task, merged, entry.id)
    # By type as well: 6.0 equals 6, and may be refused where that is not.
    typed = tuple((name, type(value), value) for name, value in sorted(merged.items()))
    try:
        hash(typed)
    except TypeError:  # such as a list of words
        return kind(**merged)
    return _shared_task(kind, kind.surroundings(merged), typed)


@lru_cache(maxsize=256)
def _parameters(kind: Any) -> tuple[str, ...]:
    """The names of a constructor's parameters."""
    return tuple(signature(kind).parameters)


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
