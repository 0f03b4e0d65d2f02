"""Classes of the user's own by dotted name."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def parts_of(name: str) -> tuple[str, str]:
    """The module and the attribute of `package.module.Class` or `package.module:Class`."""
    module, _, attribute = name.rpartition(":" if ":" in name else ".")
    return module, attribute


def load_name(key: str, name: str, example: str = "agents.GPTPolicy") -> Any:
    """The object named `package.module.Class` or `package.module:Class`.

    Args:
        key: what is being set, for the message.
        name: of the object.
        example: of such a name, for the message.

    Raises:
        ValueError: there is none.
    """
    module, attribute = parts_of(name)
    try:
        return getattr(import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(
            f"{key}: expected a dotted name such as {example}, got {name!r} ({error})"
        ) from error
