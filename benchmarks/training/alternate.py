"""CPU-seconds of workloads that take turns, so that the load of the machine meets them alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from statistics import median

from benchmarks.environments.timing import cost

Works = Mapping[str, Callable[[], object]]
"""What takes turns, by name."""


def alternate(works: Works, repeats: int) -> dict[str, float]:
    """CPU-seconds of one call of each work: the medians of `repeats` rounds, after one unmeasured.

    Raises:
        ValueError: `repeats` is less than 1.
    """
    if repeats < 1:
        raise ValueError(f"alternate: repeats must be at least 1, got {repeats}")
    for work in works.values():
        work()  # warms caches up
    rounds = [{name: cost(work, 1) for name, work in works.items()} for _ in range(repeats)]
    return {name: median(spent[name] for spent in rounds) for name in works}
