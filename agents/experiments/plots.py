"""Pictures of results: learning curves of all tasks, and a ranking of the methods."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from agents.experiments.cells import SCRIPTED, Task
from agents.experiments.pydial_results import Results
from agents.experiments.pydial_tables import Group, groups, matrix
from dialgym.experiments.plots import FAINT, INK
from dialgym.experiments.statistics import environment_estimates, seed_estimate
from dialgym.io.files import write_atomically
from dialgym.optional import require

COLOURS = ("#d55e00", "#0072b2", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#332288")
"""Told apart by colour-blind readers too (Okabe and Ito 2008); with `STYLES` for more methods."""
STYLES = ("-", (0, (5, 1.5)), (0, (1.2, 1.2)))
FIXED = {"handcrafted": INK, "random": "#9a9a9a"}
DPI = 150


def plot_curves(results: Results, path: Path) -> None:
    """Success against dialogues of training: a panel for each task, intervals over seeds.

    Raises:
        ImportError: matplotlib is not installed.
    """
    domains = list(dict.fromkeys(task.domain for task in results.tasks))
    envs = sorted({task.env for task in results.tasks})
    size = 3.0 * len(envs) + 0.4, 2.3 * len(domains) + 0.9
    figure = figure_of(*size)
    grid = figure.subplots(len(domains), len(envs), squeeze=False, sharex=True, sharey=True)
    for axes, task in zip(grid.flat, [Task(d, e) for d in domains for e in envs]):
        tidy(axes)
        axes.set_title(str(task), fontsize=9, color=INK, loc="left")
        for name in results.names():
            _curve(axes, results, name, task)
        axes.set_ylim(0, 102)
        axes.set_xticks([0, *results.tests[-1:]] if len(results.tests) < 3 else results.tests)
        axes.tick_params(labelsize=7)
    for axes in grid[-1]:
        axes.set_xlabel("dialogues of training", fontsize=8)
        axes.tick_params(axis="x", rotation=45)
    for axes in grid[:, 0]:
        axes.set_ylabel("success, %", fontsize=8)
    lines = {line.get_label(): line for axes in grid.flat for line in axes.get_lines()}
    shown = [name for name in results.names() if name in lines]
    columns = max(2, int(size[0] // 1.6))
    figure.legend(
        [lines[name] for name in shown], shown, loc="outside upper left", ncols=columns,
        frameon=False, fontsize=8,
    )  # fmt: skip
    save_figure(figure, path)


def _curve(axes: Any, results: Results, name: str, task: Task) -> None:
    found = [(test, results.success(name, task, test)) for test in results.tests]
    points = [(test, seed_estimate(values)) for test, values in found if len(values)]
    if not points:
        return
    x = [test for test, _ in points]
    colour, style = _look(results, name)
    if name in SCRIPTED:
        level = points[-1][1].value
        axes.axhline(level, color=colour, linewidth=1.1, linestyle=style, label=name, zorder=1)
        return
    y = [estimate.value for _, estimate in points]
    axes.plot(x, y, color=colour, linestyle=style, linewidth=1.5, marker="o", ms=2.5, label=name)
    if np.isfinite(points[0][1].low):
        low, high = np.array([(e.low, e.high) for _, e in points]).T
        axes.fill_between(x, low, np.minimum(high, 100), color=colour, alpha=0.12, linewidth=0)


def plot_ranking(results: Results, path: Path) -> None:
    """Mean and interquartile mean of success over tasks, a panel for each set of tasks.

    Raises:
        ImportError: matplotlib is not installed.
    """
    shown = groups(results)[:3] or [Group(results.tasks, results.names())]
    most = max(len(group.methods) for group in shown)
    figure = figure_of(4.6 * len(shown) + 0.6, 0.32 * most + 1.5)
    for axes, group in zip(figure.subplots(1, len(shown), squeeze=False).flat, shown):
        _rank(axes, results, group)
    save_figure(figure, path)


def _rank(axes: Any, results: Results, group: Group) -> None:
    last = results.tests[-1]
    found = {
        name: environment_estimates(matrix(results, name, group.tasks, last))
        for name in group.methods
    }
    names = sorted(found, key=lambda name: found[name].mean.value)
    for place, name in enumerate(names):
        colour, _ = _look(results, name)
        kinds = ((found[name].mean, "o", 0.13, "mean"), (found[name].iqm, "D", -0.13, "IQM"))
        for estimate, marker, shift, kind in kinds:
            y, fill = place + shift, colour if kind == "mean" else "white"
            if np.isfinite(estimate.low):
                axes.plot([estimate.low, estimate.high], [y, y], color=colour, linewidth=1.6)
            axes.plot(estimate.value, y, marker, color=colour, mfc=fill, ms=5, zorder=3)
    axes.set_yticks(range(len(names)), names, fontsize=8)
    axes.set_ylim(-0.6, len(names) - 0.4)
    axes.tick_params(axis="x", labelsize=8)
    tasks = (
        ", ".join(map(str, group.tasks)) if len(group.tasks) < 3 else f"{len(group.tasks)} tasks"
    )
    axes.set_title(f"{tasks}, after {last:,} dialogues", fontsize=9, color=INK, loc="left")
    axes.set_xlabel("success, %: mean (dots) and interquartile mean (diamonds)", fontsize=8)
    tidy(axes)
    axes.grid(axis="x", color=FAINT, linewidth=0.6)


def _look(results: Results, name: str) -> tuple[str, Any]:
    """Colour and line of a method: the same in all pictures of the results."""
    if name in FIXED:
        return FIXED[name], (0, (4, 3))
    learned: Sequence[str] = sorted(set(results.methods) - FIXED.keys())
    place = learned.index(name)
    return COLOURS[place % len(COLOURS)], STYLES[place // len(COLOURS) % len(STYLES)]


def figure_of(width: float, height: float) -> Any:
    """An empty figure, in inches."""
    module = require("matplotlib.figure", "ui", "drawing a picture")
    return module.Figure((width, height), layout="constrained")


def tidy(axes: Any) -> None:
    """Axes with faint lines and no frame."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color=FAINT, linewidth=0.6)
    axes.set_axisbelow(True)


def save_figure(figure: Any, path: Path) -> None:
    """Write a picture, atomically."""
    write_atomically(path, lambda temporary: figure.savefig(temporary, dpi=DPI))
