"""Scores under transfer as pictures: curves with bands, heat maps with intervals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from agents.experiments.pydial_plots import FIXED
from benchmarks.transfer.axes import Axis
from benchmarks.transfer.table import Cell, Cells, estimate, names_of
from dialgym.experiments.plots import COLOURS, INK, new_figure, save_figure, tidy
from dialgym.experiments.statistics import Estimate

ACROSS = 3
"""Curves' panels beside each other."""
DARK = 0.55
"""Share of the scale from which figures are black on bright cells."""
LABELS = {"success": "success, %", "return": "mean return"}


def draw(axis: Axis, cells: Cells, path: Path, metric: str = "success") -> None:
    """Curves where targets are error rates, else heat maps.

    Args:
        axis: what is changed.
        cells: the figures.
        path: of the picture.
        metric: success or return.

    Raises:
        ImportError: matplotlib is not installed.
    """
    (_curves if axis.name == "errors" else _maps)(cells, path, metric)


def _curves(cells: Cells, path: Path, metric: str) -> None:
    """The metric against the error rate, a panel for each environment of training."""
    places = list(dict.fromkeys(place for place, _ in cells))
    names = list(dict.fromkeys(name for _, name in cells))
    across = min(ACROSS, len(places))
    down = -(-len(places) // across)
    figure = new_figure(3.4 * across + 0.4, 2.6 * down + 0.7)
    grid = figure.subplots(down, across, squeeze=False, sharex=True, sharey=True)
    lines: dict[str, Any] = {}
    for axes, place in zip(grid.flat, places):
        tidy(axes)
        axes.set_title(f"trained in {place}", fontsize=9, color=INK, loc="left")
        for name in names:
            if row := cells.get((place, name)):
                lines[name] = _curve(axes, row, metric, _colour(name, names))
    for axes in grid.flat[len(places) :]:
        axes.set_axis_off()
    for axes in grid[:, 0]:
        axes.set_ylabel(LABELS[metric], fontsize=8)
    figure.supxlabel("error rate while scored, %; dashed: that of training", fontsize=8)
    figure.legend(
        [*lines.values()], [*lines], loc="outside upper left", ncols=6, frameon=False, fontsize=8
    )
    save_figure(figure, path)


def _curve(axes: Any, row: dict[str, Cell] | Any, metric: str, colour: str) -> Any:
    x = [float(name.removesuffix(" %")) for name in row]
    found = [estimate(cell, metric) for cell in row.values()]
    (line,) = axes.plot(x, [e.value for e in found], color=colour, marker="o", ms=3, linewidth=1.5)
    if np.isfinite([found[0].low, found[0].high]).all():
        bounds = [_bounds(e, metric) for e in found]
        axes.fill_between(x, *np.transpose(bounds), color=colour, alpha=0.15, linewidth=0)
    for at, cell in zip(x, row.values()):
        if cell.home:
            axes.axvline(at, color=INK, linewidth=0.8, linestyle=(0, (4, 3)), zorder=0)
    return line


def _bounds(found: Estimate, metric: str) -> tuple[float, float]:
    """The interval, within what the metric can be."""
    if metric == "success":
        return max(found.low, 0.0), min(found.high, 100.0)
    return found.low, found.high


def _colour(name: str, names: list[str]) -> str:
    learned = [other for other in names if other not in FIXED]
    return FIXED.get(name) or COLOURS[learned.index(name) % len(COLOURS)]


def _maps(cells: Cells, path: Path, metric: str) -> None:
    """A map for each name: environments of training downwards, targets across."""
    names = list(dict.fromkeys(name for _, name in cells))
    rows = {name: [place for place, other in cells if other == name] for name in names}
    targets = names_of(cells)
    values = [
        e.value for row in cells.values() for e in (estimate(c, metric) for c in row.values())
    ]
    low, high = (0.0, 100.0) if metric == "success" else (min(values), max(values))
    height = sum(0.55 * len(places) + 0.6 for places in rows.values()) + 0.9
    figure = new_figure(2.6 + 1.15 * len(targets), height)
    ratios = [len(places) for places in rows.values()]
    grid = figure.subplots(len(names), 1, squeeze=False, height_ratios=ratios)
    for axes, name in zip(grid.flat, names):
        found = [[cells[place, name].get(target) for target in targets] for place in rows[name]]
        means = [[np.nan if c is None else estimate(c, metric).value for c in r] for r in found]
        shades = axes.imshow(means, cmap="cividis", vmin=low, vmax=high, aspect="auto")
        for y, x in np.ndindex(len(found), len(targets)):
            if (cell := found[y][x]) is not None:
                _write(axes, x, y, cell, metric, (low, high))
        axes.set_title(name, fontsize=9, color=INK, loc="left")
        turned = {"rotation": 30, "ha": "left"} if len(targets) > 4 else {}
        axes.set_xticks(range(len(targets)), targets if axes is grid[0, 0] else [], **turned)
        axes.set_yticks(range(len(rows[name])), rows[name])
        axes.xaxis.tick_top()
        axes.tick_params(length=0, labelsize=8)
        axes.spines[:].set_visible(False)
    figure.colorbar(shades, ax=grid, label=f"{LABELS[metric]}; framed: unchanged", shrink=0.9)
    save_figure(figure, path)


def _write(axes: Any, x: int, y: int, cell: Cell, metric: str, span: tuple[float, float]) -> None:
    """A figure with its interval below it, framed where nothing is changed."""
    found = estimate(cell, metric)
    text = f"{found.value:.1f}"
    if np.isfinite([found.low, found.high]).all():
        text += "\n{:.1f} to {:.1f}".format(*_bounds(found, metric))
    bright = (found.value - span[0]) / ((span[1] - span[0]) or 1.0) > DARK
    axes.text(x, y, text, ha="center", va="center", color="black" if bright else "white", size=7)
    if cell.home:
        corner = (x - 0.48, y - 0.46)
        from matplotlib.patches import Rectangle

        axes.add_patch(Rectangle(corner, 0.96, 0.92, fill=False, color="#d55e00", linewidth=1.6))
