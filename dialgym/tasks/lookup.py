"""Loading tasks and simulators of any module by ``module:Class``, with clear errors."""

import sys
from importlib import import_module
from inspect import isclass
from typing import Any

from dialgym.errors import did_you_mean
from dialgym.tasks.base import Task
from dialgym.trust import allow


def find_task(path: str) -> Any:
    """The class of a task, or the task, at ``module:name``.

    Raises:
        ValueError: there is no such module or name, or it is no task.
    """
    found = find_object(path, "task")
    require_task(found, path)
    return found


def find_object(path: str, what: str) -> Any:
    """The object at ``module:name``; errors call it `what`.

    Raises:
        ValueError: it is no such text, or there is no such module or name.
    """
    allow(path)
    module, _, name = path.partition(":")
    if not (module and name):
        raise ValueError(f"{what} {path!r}: expected module:Class, or a registered name.")
    found = import_for(module, path)
    for part in name.split("."):
        if not hasattr(found, part):
            hint = did_you_mean(part, vars(found))
            raise ValueError(f"{what} {path!r}: module {module!r} has no {name!r}.{hint}")
        found = getattr(found, part)
    return found


def import_for(module: str, path: str) -> Any:
    """The module that `path` begins with.

    Raises:
        ValueError: there is none.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise  # the module is there, and misses another one
        raise ValueError(
            f"{path!r}: there is no module {error.name!r} here. Run it from the folder of "
            f"{module}, or install it."
        ) from error


def require_task(found: Any, path: str) -> None:
    """Raise a ValueError unless what was found is a task or a class of tasks."""
    if not (issubclass(found, Task) if isclass(found) else isinstance(found, Task)):
        raise ValueError(
            f"{path}: expected an id, a dialgym.tasks.Task, a subclass of it, or module:Class; "
            f"got {found!r}."
        )


def is_found(kind: type) -> bool:
    """Return True if ``module:Class`` finds a class again."""
    found: Any = sys.modules.get(kind.__module__)
    for part in kind.__qualname__.split("."):
        found = getattr(found, part, None)
    return found is kind
