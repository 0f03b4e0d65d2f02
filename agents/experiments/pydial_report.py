"""Report of PyDial's benchmark: tables and pictures, written beside the results."""

from __future__ import annotations

from pathlib import Path

from agents.experiments.pydial_plots import plot_calibration, plot_curves, plot_ranking
from agents.experiments.pydial_results import Results
from agents.experiments.pydial_tables import markdown
from dialgym.experiments.pydial_ranking import origins_of
from dialgym.experiments.rules import older_rules
from dialgym.io.files import write_text

TABLES, CURVES, RANKING = "tables.md", "curves.png", "ranking.png"
CALIBRATION = "calibration.png"


def write_report(folder: Path) -> list[Path]:
    """Write the tables and plots of the results in a folder.

    Raises:
        ValueError: there are none.
        ImportError: matplotlib is not installed; the tables have then been written.
    """
    results = Results.load(folder)
    write_text(folder / TABLES, markdown(results, older_in(folder)))
    plot_curves(results, folder / CURVES)
    plot_ranking(results, folder / RANKING)
    files = [folder / name for name in (TABLES, CURVES, RANKING)]
    found = {name: list(f.calibrations.values()) for name, f in results.methods.items()}
    if calibrated := {name: jobs for name, jobs in found.items() if jobs}:
        plot_calibration(calibrated, folder / CALIBRATION)
        files.append(folder / CALIBRATION)
    return files


def older_in(folder: Path) -> str:
    """A line about the rows of a folder that are of older rules; empty for none."""
    files = sorted(folder.glob("*.csv"))
    return older_rules(origin for file in files for origin in origins_of(file))
