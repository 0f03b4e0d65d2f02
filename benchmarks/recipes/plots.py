"""Pictures of tables: means with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.recipes.tables import Line
from dialgym.experiments.plots import COLOURS, INK, draw_interval, new_figure, save_figure, tidy
from dialgym.experiments.statistics import seed_estimate


def plot(table: Sequence[Line], path: Path) -> None:
    """Mean returns with 95 % intervals, a line each, and each seed as a dot.

    Raises:
        ImportError: matplotlib is not installed.
    """
    figure = new_figure(6.4, 0.9 + 0.45 * len(table))
    axes = figure.subplots()
    tidy(axes, "x")
    for y, line in enumerate(table):
        axes.plot(line.means, np.full(len(line.means), y), "o", color=INK, alpha=0.35, ms=4)
        draw_interval(axes, y, seed_estimate(line.means), COLOURS[0], "D")
        mean = line.means.mean()
        axes.annotate(
            f"{mean:.2f}", (mean, y), (0, 7), textcoords="offset points", ha="center", size=8
        )
    several = len({line.env_id for line in table}) > 1
    names = [
        f"{line.method}\n{line.env_id.split('/')[1]}" if several else line.method for line in table
    ]
    axes.set_yticks(range(len(table)), names)
    axes.set_ylim(len(table) - 0.4, -0.7)
    axes.set_xlabel("mean return; diamonds: mean and 95 % interval over seeds, dots: seeds")
    axes.spines["left"].set_visible(False)
    save_figure(figure, path)
