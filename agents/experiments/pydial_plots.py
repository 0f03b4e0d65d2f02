"""Pictures of PyDial's benchmark: learning curves, a ranking of the methods, calibration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from agents.experiments.pydial_panel import SCRIPTED, Task
from agents.experiments.pydial_results import Results
from agents.experiments.pydial_tables import Group, groups, matrix
from dialgym.experiments.plots import (
    COLOURS,
    DASHED,
    FAINT,
    GREY,
    INK,
    STYLES,
    add_legend,
    draw_band,
    draw_interval,
    name_rows,
    new_figure,
    tidy,
)
from dialgym.experiments.statistics import PERCENT, environment_estimates, seed_estimate
from dialgym.io.files import save_figure

FIXED = {"handcrafted": INK, "random": GREY}


def plot_curves(results: Results, path: Path) -> None:
    """Success against dialogues of training: a panel for each task, intervals over seeds.

    The results are of one fidelity.

    Raises:
        ImportError: matplotlib is not installed.
    """
    domains = list(dict.fromkeys(task.domain for task in results.tasks))
    envs = sorted({task.env for task in results.tasks})
    width = 3.0 * len(envs) + 0.4
    figure = new_figure(width, 2.3 * len(domains) + 0.9)
    grid = figure.subplots(len(domains), len(envs), squeeze=False, sharex=True, sharey=True)
    (fidelity,) = results.fidelities
    cells = [Task(d, e, fidelity=fidelity) for d in domains for e in envs]
    for axes, task in zip(grid.flat, cells):
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
    add_legend(
        figure,
        max(2, int(width // 1.6)),
        {name: lines[name] for name in results.names() if name in lines},
    )
    save_figure(figure, path)


def _curve(axes: Any, results: Results, name: str, task: Task) -> None:
    values = {test: results.success(name, task, test) for test in results.tests}
    points = {test: seed_estimate(each, PERCENT) for test, each in values.items() if len(each)}
    colour, style = _look(results, name)
    if points and name in SCRIPTED:
        level = points[max(points)].value
        axes.axhline(level, color=colour, linewidth=1.1, linestyle=style, label=name, zorder=1)
    elif points:
        line = {"linestyle": style, "linewidth": 1.5, "marker": "o", "ms": 2.5, "label": name}
        draw_band(axes, [*points], [*points.values()], colour, **line)


def plot_ranking(results: Results, path: Path) -> None:
    """Mean and interquartile mean of success over tasks, a panel for each set of tasks.

    Raises:
        ImportError: matplotlib is not installed.
    """
    drawn = groups(results)[:3] or [Group(results.tasks, results.names())]
    most = max(len(group.methods) for group in drawn)
    figure = new_figure(4.6 * len(drawn) + 0.6, 0.32 * most + 1.5)
    for axes, group in zip(figure.subplots(1, len(drawn), squeeze=False).flat, drawn):
        _rank(axes, results, group)
    save_figure(figure, path)


def _rank(axes: Any, results: Results, group: Group) -> None:
    last = results.tests[-1]
    estimates = {
        name: environment_estimates(matrix(results, name, group.tasks, last), PERCENT)
        for name in group.methods
    }
    names = sorted(estimates, key=lambda name: estimates[name].mean.value)
    for y, name in enumerate(names):
        colour, _ = _look(results, name)
        draw_interval(axes, y + 0.13, estimates[name].mean, colour)
        draw_interval(axes, y - 0.13, estimates[name].iqm, colour, "D", filled=False)
    name_rows(axes, names)
    axes.tick_params(axis="x", labelsize=8)
    several = f"{len(group.tasks)} tasks"
    tasks = ", ".join(map(str, group.tasks)) if len(group.tasks) < 3 else several
    axes.set_title(f"{tasks}, after {last:,} dialogues", fontsize=9, color=INK, loc="left")
    axes.set_xlabel("success, %: mean (dots) and interquartile mean (diamonds)", fontsize=8)
    tidy(axes)
    axes.grid(axis="x", color=FAINT, linewidth=0.6)


def _look(results: Results, name: str) -> tuple[str, Any]:
    """Colour and line of a method: the same in all pictures of the results."""
    if name in FIXED:
        return FIXED[name], DASHED
    learned: Sequence[str] = sorted(set(results.methods) - FIXED.keys())
    i = learned.index(name)
    return COLOURS[i % len(COLOURS)], STYLES[i // len(COLOURS) % len(STYLES)]


def plot_calibration(found: Mapping[str, Sequence[Mapping[str, Any]]], path: Path) -> None:
    """Figures of `calibration` for each method, a mean over its jobs.

    Raises:
        ImportError: matplotlib is not installed.
    """
    figure = new_figure(10.5, 3.9)
    left, middle, right = figure.subplots(1, 3)
    for axes in (left, middle, right):
        tidy(axes)
    left.plot([0, 1], [0, 1], color=INK, linewidth=0.8, linestyle=DASHED)
    for colour, (name, jobs) in zip(COLOURS * len(found), sorted(found.items())):
        mean = {key: np.mean([job[key] for job in jobs], axis=0) for key in jobs[0]}
        look = {"color": colour, "marker": "o", "ms": 3, "linewidth": 1.4}
        left.plot(mean["levels"], mean["coverage"], label=name, **look)
        middle.plot(mean["expected"], mean["returned"], **look)
        right.plot(mean["unsure"], mean["error"], **look)
    for axes in (middle, right):
        low, high = axes.get_xlim()
        axes.plot([low, high], [low, high], color=INK, linewidth=0.8, linestyle=DASHED)
        axes.set_xlim(low, high)
    _label(left, "share of Q's distribution", "returns within it")
    _label(middle, "Q, tenths of the decisions", "return")
    _label(right, "deviation of Q, tenths of the decisions", "root mean square of return - Q")
    add_legend(figure, 6)
    save_figure(figure, path)


def _label(axes: Any, x: str, y: str) -> None:
    axes.set_xlabel(x, fontsize=8)
    axes.set_ylabel(y, fontsize=8)
    axes.tick_params(labelsize=7)
