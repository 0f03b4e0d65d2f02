"""Objects of any module by their names, ``module:name``, with clear errors."""

import re
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from inspect import Parameter, signature
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


def part_of(given: Any, what: str, methods: Sequence[str], world: Any) -> Any:
    """Return a part of a task with some methods: the object itself, or that of a ``module:Class``.

    Args:
        given: the object, or the name of a class that is made of `world` or of nothing.
        what: the part's name, for errors.
        methods: its methods with their arguments, such as ``update(belief, acts)``.
        world: the world or ontology of the task.

    Raises:
        ValueError: it lacks one of the methods, or see `load`.
    """
    made = given
    if isinstance(given, str):
        make = find_object(given, what)
        made = make(world) if signature(make).parameters else make()
    missing = [m for m in methods if not callable(getattr(made, m.partition("(")[0], None))]
    if not missing:
        return made
    raise ValueError(
        f"{what}: expected an object with {' and '.join(methods)}, or the module:Class of one; got "
        f"{given!r}, which has no {missing[0]}."
    )


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


def without_module(path: str, imported: bool = False) -> str:
    """The id in ``module:id``; other names, ``module:Class`` among them, as they are.

    Args:
        path: the name.
        imported: the module must be imported already.
    """
    module, _, name = path.partition(":")
    is_id = bool(name) and ("/" in name or re.search(r"-v\d+$", name))
    return name if is_id and (module in sys.modules or not imported) else path


def is_found(kind: type) -> bool:
    """Return True if ``module:Class`` finds a class again."""
    found: Any = sys.modules.get(kind.__module__)
    for part in kind.__qualname__.split("."):
        found = getattr(found, part, None)
    return found is kind


def by_name(cls: type, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any] | None:
    """Arguments by their names in the signature of a class; None where they have none."""
    try:
        bound = signature(cls).bind(*args, **kwargs)
    except TypeError:  # the class itself will say what is wrong with them
        return None
    named: dict[str, Any] = {}
    for name, value in bound.arguments.items():
        kind = bound.signature.parameters[name].kind
        if kind in (Parameter.VAR_POSITIONAL, Parameter.POSITIONAL_ONLY):
            return None
        named |= value if kind is Parameter.VAR_KEYWORD else {name: value}
    return named


def shortened(value: Any) -> str:
    """The repr of a value, cut after 60 characters."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
