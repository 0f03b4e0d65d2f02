"""Settings of a run as JSON and YAML have them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

OBJECT = "$object"
"""Key of the `repr` of what has no form in a file."""


def as_plain(value: Any) -> Any:
    """A value as JSON and YAML have it: classes by name, mappings and lists part by part."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, Mapping):
        return {str(key): as_plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [as_plain(part) for part in value]
    if isinstance(value, type):
        return f"{value.__module__}.{value.__qualname__}"
    if is_dataclass(value) and not isinstance(value, type):
        return {one.name: as_plain(getattr(value, one.name)) for one in fields(value)}
    return {OBJECT: repr(value)}


def object_in(value: Any) -> str | None:
    """The `repr` of an object that `as_plain` found within a value."""
    if isinstance(value, Mapping):
        if OBJECT in value:
            return str(value[OBJECT])
        return next(filter(None, map(object_in, value.values())), None)
    return next(filter(None, map(object_in, value)), None) if isinstance(value, list) else None
