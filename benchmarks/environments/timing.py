"""Rates and times in CPU-seconds of this process, and a description of the machine."""

import os
import platform
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from statistics import median

from dialgym.versions import hardware

REPEATS, SECONDS = 5, 0.5


@dataclass(frozen=True)
class Figure:
    """One measured figure.

    Attributes:
        what: was measured.
        value: in `unit`.
        unit: ``"/s"`` for a rate, ``"s"`` for a time, both of the CPU; or nothing.
        bar: what the project asks of it, at least of a rate and at most of anything else.
        reference: a figure of the same run that it is worth comparing with.
        than: a short name of that.
    """

    what: str
    value: float
    unit: str
    bar: float | None = None
    reference: "Figure | None" = None
    than: str = ""

    @property
    def ratio(self) -> float | None:
        """The figure over its reference."""
        return None if self.reference is None else self.value / self.reference.value

    @property
    def holds(self) -> bool | None:
        """True where it is as good as the bar asks; None without one."""
        if self.bar is None:
            return None
        return self.value >= self.bar if self.unit == "/s" else self.value <= self.bar


def rate(work: Callable[[], int], repeats: int = REPEATS, seconds: float = SECONDS) -> float:
    """Units a CPU-second of `work`, which returns how many it did; the median."""
    work()  # warms caches up
    return median(_rate(work, seconds) for _ in range(repeats))


def _rate(work: Callable[[], int], seconds: float) -> float:
    done, start = 0, time.process_time()
    while True:
        done += work()
        spent = time.process_time() - start
        if spent >= seconds:
            return done / spent


def cost(work: Callable[[], object], repeats: int = REPEATS) -> float:
    """CPU-seconds of one call of `work`; the median."""
    return median(_cost(work) for _ in range(repeats))


def _cost(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


Works = Mapping[str, Callable[[], object]]
"""Works that take turns, by name."""


def alternate(works: Works, repeats: int) -> dict[str, float]:
    """CPU-seconds of one call of each work, which take turns: the load meets them alike.

    Returns:
        The medians of `repeats` rounds, after one that is not measured.

    Raises:
        ValueError: `repeats` is less than 1.
    """
    if repeats < 1:
        raise ValueError(f"alternate: repeats must be at least 1, got {repeats}")
    for work in works.values():
        work()  # warms caches up
    rounds = [{name: _cost(work) for name, work in works.items()} for _ in range(repeats)]
    return {name: median(spent[name] for spent in rounds) for name in works}


def machine() -> dict[str, str]:
    """Facts of the machine that figures depend on."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "CPU": hardware()["processor"],
        "cores": f"{usable} usable of {os.cpu_count()}",
        "load": f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown",
        "system": platform.platform(terse=True),
        "Python": platform.python_version(),
        "NumPy": version("numpy"),
        "Gymnasium": version("gymnasium"),
        "dialgym": version("dialgym"),
    }


def print_machine(**more: str) -> None:
    """Print the facts of the machine, and an empty line."""
    print(*(f"{name}: {value}" for name, value in {**machine(), **more}.items()), "", sep="\n")
