"""A table's lines as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.recipes.tables import Line
from dialgym.experiments.plots import COLOURS, FAINT, INK
from dialgym.io.files import write_atomically
from dialgym.optional import require

MEAN = COLOURS[0]


def plot(table: Sequence[Line], path: Path) -> None:
    """Mean returns with 95 % intervals, a line each, and each seed as a dot.

    Raises:
        ImportError: matplotlib is not installed.
    """
    module = require("matplotlib.figure", "ui", "drawing a picture")
    figure = module.Figure((6.4, 0.9 + 0.45 * len(table)), layout="constrained")
    axes = figure.subplots()
    several = len({line.env_id for line in table}) > 1
    for place, line in enumerate(table):
        mean, interval = line.means.mean(), np.array(line.interval)
        axes.plot(line.means, np.full(len(line.means), place), "o", color=INK, alpha=0.35, ms=4)
        if np.isfinite(interval).all():
            axes.plot(interval, [place, place], color=MEAN, linewidth=2)
        axes.plot(mean, place, "D", color=MEAN, ms=6)
        axes.annotate(
            f"{mean:.2f}", (mean, place), (0, 7), textcoords="offset points", ha="center", size=8
        )
    names = [f"{line.method}\n{line.env_id.split('/')[1]}" if several else line.method
             for line in table]  # fmt: skip
    axes.set_yticks(range(len(table)), names)
    axes.set_ylim(len(table) - 0.4, -0.7)
    axes.set_xlabel("mean return; diamonds: mean and 95 % interval over seeds, dots: seeds")
    axes.grid(axis="x", color=FAINT)
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)
    write_atomically(path, lambda temporary: figure.savefig(temporary, dpi=160))
