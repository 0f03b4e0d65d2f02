"""Objects of any module by their names, ``module:name``, with clear errors."""

import sys
from importlib import import_module
from typing import Any

from dialgym.errors import did_you_mean
from dialgym.trust import allow


def resolve(given: Any, what: str) -> Any:
    """Return the object that a ``module:name`` names; anything else is the object itself.

    Raises:
        ValueError: see `load`.
    """
    return load(given, what) if isinstance(given, str) else given


def find_object(path: str, what: str) -> Any:
    """Load the object at a ``module:name`` that a caller gives, and so allows files to name.

    Raises:
        ValueError: see `load`.
    """
    allow(path)
    return load(path, what)


def load(path: str, what: str = "object") -> Any:
    """Load the object at ``module:name``; errors call it `what`.

    Raises:
        ValueError: it is no such text, or there is no such module or name.
    """
    module, _, name = path.partition(":")
    if not (module and name):
        raise ValueError(f"{what} {path!r}: expected module:Class, or a registered name.")
    found = import_for(module, f"{what} {path!r}")
    for part in name.split("."):
        if not hasattr(found, part):
            hint = did_you_mean(part, vars(found))
            raise ValueError(f"{what} {path!r}: module {module!r} has no {name!r}.{hint}")
        found = getattr(found, part)
    return found


def import_for(module: str, what: str) -> Any:
    """Import a module; errors call what is looked for in it `what`.

    Raises:
        ValueError: there is none.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise  # the module is there, and misses another one
        raise ValueError(
            f"{what}: there is no module {error.name!r} here. Run it from the folder of "
            f"{module}, or install it."
        ) from error


def is_found(kind: type) -> bool:
    """Return True if ``module:Class`` finds a class again."""
    found: Any = sys.modules.get(kind.__module__)
    for part in kind.__qualname__.split("."):
        found = getattr(found, part, None)
    return found is kind
