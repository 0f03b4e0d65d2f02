"""Rates and times in CPU-seconds of this process, and a description of the machine."""

import os
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from statistics import median

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


def machine() -> dict[str, str]:
    """Facts of the machine that figures depend on."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "CPU": _processor(),
        "cores": f"{usable} usable of {os.cpu_count()}",
        "load": f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown",
        "system": platform.platform(terse=True),
        "Python": platform.python_version(),
        "NumPy": version("numpy"),
        "Gymnasium": version("gymnasium"),
        "dialgym": version("dialgym"),
    }


def _processor() -> str:
    """The model's name: Linux tells it in a file, other systems through `platform`."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
