"""Records of what scripted policies scored: figures, and the command and machine that made them.

A table of docs/results whose policies are not trained has a record in benchmarks/results/scripted.
Seeds are fixed: the command of a record gives its figures again, but for speeds, which are of a
machine.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dialgym.io.checksums import read_json_checked, write_json_checked
from dialgym.versions import hardware, stopwatch, versions

FORM = "dialgym record 1"
RECORDS = Path(__file__).parents[1] / "results" / "scripted"
ENTRIES = ("form", "command", "figures", "cost", "hardware", "versions")
Figures = Mapping[str, Any]


def make_record(
    name: str, command: str, measure: Callable[[], Figures], folder: Path = RECORDS
) -> Figures:
    """Measure, write the record, and return its figures.

    Args:
        name: of the table.
        command: that measures them.
        measure: makes them, as plain values.
        folder: of the records.
    """
    cost_so_far = stopwatch()
    figures = measure()
    record = {
        "form": FORM,
        "command": command,
        "figures": figures,
        "cost": cost_so_far(),
        "hardware": hardware(),
        "versions": versions(),
    }
    write_json_checked(folder / f"{name}.json", record)
    return figures


def read_record(name: str, folder: Path = RECORDS) -> dict[str, Any]:
    """Read the record of a table.

    Raises:
        FileNotFoundError: there is none.
        ValueError: the file holds something else, or is damaged.
    """
    file = folder / f"{name}.json"
    found = read_json_checked(file, "a record of measurements, as JSON")
    missing = [entry for entry in ENTRIES if not isinstance(found, dict) or entry not in found]
    if missing or found["form"] != FORM:
        raise ValueError(
            f"{str(file)!r}: expected a record with {', '.join(ENTRIES)} and the form {FORM!r}; "
            f"it lacks {', '.join(missing) or 'that form'}. Make it again."
        )
    return dict(found)


def run_measurement(
    about: str | None,
    name: str,
    command: str,
    episodes: int,
    measure: Callable[[int], Figures],
    table: Callable[[Figures], str],
) -> None:
    """Measure as the command line says, write the record and print the table.

    Args:
        about: the module's docstring, whose first line the help shows.
        name, command: as of `make_record`.
        episodes: of each policy, by default.
        measure: makes the figures of so many.
        table: of the figures.
    """
    parser = argparse.ArgumentParser(description=(about or "").partition("\n")[0])
    parser.add_argument("--episodes", type=int, default=episodes)
    given = parser.parse_args()
    print(table(make_record(name, command, lambda: measure(given.episodes))))


def counted(values: np.ndarray) -> dict[str, int]:
    """Count the values of some episodes, least first."""
    return dict(Counter(f"{value:g}" for value in sorted(values.ravel().tolist())))


def from_counts(counts: Mapping[str, int]) -> np.ndarray:
    """(E,) the values that were counted, least first."""
    return np.repeat(np.array([float(value) for value in counts]), list(counts.values()))


def mean_and_half(values: np.ndarray, digits: int = 2) -> str:
    """The mean of (E,) values, and half of its 95 % interval by the normal approximation."""
    half = 1.96 * float(np.std(values)) / len(values) ** 0.5
    return f"{np.mean(values):.{digits}f} ± {half:.{digits}f}"
