"""CPU time to spend, and counts of tries and failures."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np


@dataclass
class Tally:
    """Counts of tries, and descriptions of failures.

    Attributes:
        kind: of attack, a row of the table.
        tries: how often.
        failures: what went wrong, a line each.
    """

    kind: str
    tries: int = 0
    failures: list[str] = field(default_factory=list)

    @contextmanager
    def noting(self, what: str) -> Iterator[None]:
        """Note whatever the block raises as a failure."""
        try:
            yield
        except Exception as error:
            said = " ".join(str(error).split())[:4000]
            self.failures.append(f"{what}: {type(error).__name__}: {said}")


class Budget:
    """CPU-seconds of this process and of those that it has waited for.

    Args:
        seconds: to spend from now on.
    """

    def __init__(self, seconds: float) -> None:
        self._until = spent() + seconds

    def __bool__(self) -> bool:
        """Return True if some are left."""
        return spent() < self._until


Attack = Callable[[Budget, np.random.Generator, Path], Iterator[Tally]]
"""Yields tallies, each of what was tried since the one before, until the budget is spent. It may
write into the folder that it is given."""


def spent() -> float:
    """CPU-seconds of this process and of those that it has waited for."""
    return sum(os.times()[:4])


@contextmanager
def within(seconds: int) -> Iterator[None]:
    """An AssertionError where the block takes longer, as what hangs does."""

    def ring(*_: object) -> None:
        raise AssertionError(f"hangs: not done after {seconds} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
