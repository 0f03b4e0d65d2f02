"""Tasks of any module by ``module:Class``."""

from inspect import isclass
from typing import Any

from dialgym.io.objects import find_object
from dialgym.tasks.base import Task


def find_task(path: str) -> Any:
    """The class of a task, or the task, at ``module:name``.

    Raises:
        ValueError: there is no such module or name, or it is no task.
    """
    found = find_object(path, "task")
    require_task(found, path)
    return found


def require_task(found: Any, path: str) -> None:
    """Raise a ValueError unless what was found is a task or a class of tasks."""
    if not (issubclass(found, Task) if isclass(found) else isinstance(found, Task)):
        raise ValueError(
            f"{path}: expected an id, a dialgym.tasks.Task, a subclass of it, or module:Class; "
            f"got {found!r}."
        )
