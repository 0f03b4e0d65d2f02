"""Report of PyDial's benchmark: tables and pictures, written beside the results."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from agents.experiments.pydial_plots import plot_calibration, plot_curves, plot_ranking
from agents.experiments.pydial_results import Results
from agents.experiments.pydial_tables import markdown
from dialgym.experiments.pydial_ranking import origins_of
from dialgym.experiments.rules import older_rules
from dialgym.io.files import write_text

TABLES = "tables.md"


def write_report(folder: Path) -> list[Path]:
    """Write the tables of the results in a folder, and plots of each fidelity.

    Raises:
        ValueError: there are none.
        ImportError: matplotlib is not installed; the tables have then been written.
    """
    results = Results.load(folder)
    write_text(folder / TABLES, markdown(results, older_in(folder)))
    files = [folder / TABLES]
    for fidelity in results.fidelities:
        files += _plots(results.of_fidelity(fidelity), folder, fidelity)
    return files


def _plots(results: Results, folder: Path, fidelity: str) -> Iterator[Path]:
    """Plot the results of one fidelity: learning curves, ranking and, where known, calibration."""
    curves, ranking, calibration = (
        folder / f"{name}-{fidelity}.png" for name in ("curves", "ranking", "calibration")
    )
    plot_curves(results, curves)
    yield curves
    plot_ranking(results, ranking)
    yield ranking
    found = {name: list(f.calibrations.values()) for name, f in results.methods.items()}
    if calibrated := {name: jobs for name, jobs in found.items() if jobs}:
        plot_calibration(calibrated, calibration)
        yield calibration


def older_in(folder: Path) -> str:
    """A line about the rows of a folder that are of older rules; empty for none."""
    files = sorted(folder.glob("*.csv"))
    return older_rules(origin for file in files for origin in origins_of(file))
