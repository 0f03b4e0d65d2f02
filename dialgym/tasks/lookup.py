"""Tasks of any module by ``module:Class``, and environments of others by their schemes."""

from collections.abc import Iterable, Mapping
from inspect import isclass
from typing import Any

from dialgym.io.files import parse_setting
from dialgym.io.objects import find_object
from dialgym.kinds import KINDS
from dialgym.tasks.base import Task

FOREIGN: Mapping[str, str] = {
    "gymnasium": "dialgym.bridges.gymnasium:GymnasiumTask",
    "openenv": "dialgym.bridges.openenv_client:OpenEnvTask",
    "textarena": "dialgym.bridges.textarena:TextArenaTask",
    "verifiers": "dialgym.bridges.verifiers_client:VerifiersTask",
}
"""By scheme, the class of tasks whose dialogues are those of an environment of others."""


def find_foreign(path: str) -> tuple[str, str] | None:
    """The task and the address of ``SCHEME:ADDRESS``; None where it is no such path.

    The suffix of its only view may follow.
    """
    scheme, _, address = path.partition(":")
    address = address.removesuffix(KINDS["utterance"].suffix)
    return (FOREIGN[scheme], address) if scheme in FOREIGN else None


def find_task(path: Any) -> Any:
    """The class of a task, or the task, at ``module:name``; anything but a text is returned as is.

    Raises:
        ValueError: there is no such module or name, or it is no task.
    """
    if not isinstance(path, str):
        return path
    found = find_object(path, "task")
    require_task(found, path)
    return found


def parse_options(task: Task, texts: Iterable[str], where: str) -> dict[str, Any]:
    """Options of `reset` from texts ``word=crane`` that a person wrote.

    A word that YAML takes for a truth value or for nothing, such as "false", stays a text where
    the secrets of the task are texts.

    Raises:
        ValueError: a text has no ``=``, or its value is no YAML; it begins with `where`.
    """
    options = {}
    for text in texts:
        name, value = parse_setting(text, where)
        if isinstance(value, bool | None):
            secret = next(iter(task.secrets()), {}).get(name)
            value = text.partition("=")[2].strip() if isinstance(secret, str) else value
        options[name] = value
    return options


def require_task(found: Any, path: str) -> None:
    """Raise a ValueError unless what was found is a task or a class of tasks."""
    if not (issubclass(found, Task) if isclass(found) else isinstance(found, Task)):
        raise ValueError(
            f"{path}: expected an id, a dialgym.tasks.Task, a subclass of it, or module:Class; "
            f"got {found!r}."
        )
