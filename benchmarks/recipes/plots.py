"""Pictures of tables: means with intervals, and heat maps."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

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


DARK = 0.55
"""Share of a heat map's scale from which figures are black on bright cells."""


def draw_heat_map(
    axes: Any,
    values: np.ndarray,
    texts: Sequence[Sequence[str]],
    span: tuple[float, float],
    names: tuple[Sequence[str], Sequence[str]],
) -> Any:
    """Draw (R, C) values as shades with a text in each; NaN is left blank.

    Args:
        axes: to draw on.
        values: of the cells.
        texts: of the cells, row by row.
        span: values of the darkest and the brightest shade.
        names: of the rows and of the columns.

    Returns:
        What a colour bar is made of.
    """
    low, high = span
    shades = axes.imshow(values, cmap="cividis", vmin=low, vmax=high, aspect="auto")
    for y, x in np.argwhere(np.isfinite(values)):
        bright = (values[y, x] - low) / ((high - low) or 1.0) > DARK
        ink = "black" if bright else "white"
        axes.text(x, y, texts[y][x], ha="center", va="center", color=ink, size=7)
    turned = {"rotation": 30, "ha": "left"} if len(names[1]) > 4 else {}
    axes.set_xticks(range(len(names[1])), names[1], **turned)
    axes.set_yticks(range(len(names[0])), names[0])
    axes.xaxis.tick_top()
    axes.tick_params(length=0, labelsize=8)
    axes.spines[:].set_visible(False)
    return shades
