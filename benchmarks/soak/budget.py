"""CPU time to spend, and what came of it."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np


@dataclass
class Tally:
    """How often something was tried, and what went wrong."""

    tries: int = 0
    failures: list[str] = field(default_factory=list)

    def note(self, what: str, error: BaseException) -> None:
        """Note that something went wrong."""
        self.failures.append(f"{what}: {type(error).__name__}: {error}")


class Budget:
    """CPU-seconds of this process and of those that it has waited for.

    Args:
        seconds: to spend from now on.
    """

    def __init__(self, seconds: float) -> None:
        self._until = _spent() + seconds

    def __bool__(self) -> bool:
        """Whether some are left."""
        return _spent() < self._until


Attack = Callable[[Budget, np.random.Generator], Iterator[Tally]]
"""Yields tallies, each of what was tried since the one before, until the budget is spent."""


def _spent() -> float:
    return sum(os.times()[:4])
