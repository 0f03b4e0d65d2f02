"""Which parameters of a test `make test` tries; `make nightly` tries all."""

from collections.abc import Iterable
from typing import Any

import pytest


def by_day(values: Iterable[Any], *tried: Any) -> list[Any]:
    """Parameters of a test: those of `tried` as they are, the others marked slow.

    For tests of one claim over many settings, of which each has quick tests of its own.
    A tuple is the values of several parameters, as it is for pytest.
    """
    values = list(values)
    if unknown := [value for value in tried if value not in values]:
        raise ValueError(f"by_day: expected some of {values}, got {unknown}")
    return [value if value in tried else at_night(value) for value in values]


def at_night(value: Any) -> Any:
    """A parameter, or a tuple of parameters, that is marked slow."""
    return pytest.param(*(value if isinstance(value, tuple) else (value,)), marks=pytest.mark.slow)
