"""Strict reading of plain values: an unexpected entry or type is one clear error."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from dialgym.errors import is_finite, unknown

_NEEDED: Any = object()


class StrictReader:
    """Reader of typed values from a mapping.

    Args:
        where: where it stands, for messages.
        values: the mapping.
        known: all names that it may have; None for any.
    """

    def __init__(self, where: str, values: Any, known: Iterable[str] | None = None) -> None:
        if not isinstance(values, Mapping):
            raise ValueError(f"{where}: expected names with values, got {values!r:.80}")
        self.where, self.values = where, values
        for name in values:
            if known is not None and name not in known:
                raise unknown("entry", name, known, where)

    def get(self, name: str, kind: Any, default: Any = _NEEDED) -> Any:
        """An entry of a type; a truth value is no number."""
        value = self.values.get(name, default)
        if value is _NEEDED:
            got = str(sorted(map(str, self.values)))[:80]
            raise ValueError(f"{self.where}: expected an entry {name!r}, got {got}")
        if value is default or (isinstance(value, kind) and not isinstance(value, bool)):
            return value
        kinds = kind if isinstance(kind, tuple) else (kind,)
        expected = " or ".join(_KINDS[one] for one in kinds)
        raise ValueError(f"{self.where}, {name}: expected {expected}, got {value!r:.80}")

    def count(self, name: str, default: Any = _NEEDED) -> int:
        """A whole number from 1."""
        value: int = self.get(name, int, default)
        if value < 1:
            raise ValueError(f"{self.where}, {name}: expected a whole number from 1, got {value}")
        return value

    def one_of(self, name: str, known: Iterable[str], default: str = _NEEDED) -> str:
        """One of some texts."""
        value: str = self.get(name, str, default)
        if value not in known:
            raise unknown(name, value, known, self.where)
        return value

    def numbers(self, name: str, known: Iterable[str]) -> dict[str, int]:
        """Whole numbers from 1 by known names."""
        part = StrictReader(f"{self.where}, {name}", self.get(name, dict, {}), known)
        return {key: part.count(key) for key in part.values}


def all_finite(column: Iterable[Any]) -> bool:
    """Return True if all are finite numbers; truth values are none."""
    values = [*column]
    if not {*map(type, values)} <= {float, int}:  # those of a file are, and many at a time
        return all(map(is_finite, values))
    try:
        return all(map(math.isfinite, values))
    except OverflowError:  # a whole number beyond all floats
        return False


_KINDS: Mapping[Any, str] = {
    str: "a text", int: "a whole number", float: "a number", list: "a list", dict: "a mapping",
}  # fmt: skip
