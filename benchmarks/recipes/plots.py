"""Pictures of tables: means with intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.recipes.tables import PREFIX, Line
from dialgym.experiments.plots import COLOURS, INK, draw_interval, new_figure, tidy
from dialgym.experiments.statistics import seed_estimate
from dialgym.io.files import save_figure

RETURN = "return"


def plot(table: Sequence[Line], path: Path, figures: Mapping[str, str] | None = None) -> None:
    """Means of figures and of returns with 95 % intervals, a line each, and each seed as a dot.

    Args:
        table: lines; those of a group of a recipe stand together.
        path: PNG file.
        figures: titles of the measured figures that stand left of the return, by their names.

    Raises:
        ImportError: matplotlib is not installed.
    """
    shown = {**(figures or {}), RETURN: "mean return"}
    groups = _groups(table)
    sizes = [0.6 + len(lines) for lines in groups.values()]
    picture = new_figure(2.2 + 4.2 * len(shown), 0.9 + 0.42 * sum(sizes))
    grid = picture.subplots(
        len(groups), len(shown), squeeze=False, height_ratios=sizes, sharey="row"
    )
    for row, (group, lines) in zip(grid, groups.items()):
        for axes, name in zip(row, shown):
            _draw(axes, lines, name)
        several = len({line.env_id for line in lines}) > 1
        names = [_method(line) + f"\n{line.env_id.split('/')[1]}" * several for line in lines]
        row[0].set_yticks(range(len(lines)), names)
        row[0].set_ylim(len(lines) - 0.4, -0.7)
        row[0].set_title(group, loc="left", size=9, color=INK)
    for axes, title in zip(grid[-1], shown.values()):
        axes.set_xlabel(
            f"{title}\ndiamonds: mean and 95 % interval over seeds, dots: seeds", size=8
        )
    save_figure(picture, path)


def _groups(table: Sequence[Line]) -> dict[str, list[Line]]:
    groups: dict[str, list[Line]] = {}
    for line in table:
        groups.setdefault(line.prefix.removesuffix(PREFIX), []).append(line)
    return groups


def _method(line: Line) -> str:
    return line.method.removeprefix(line.prefix)


def _draw(axes: Any, lines: Sequence[Line], name: str) -> None:
    """A figure of some lines, the first one at the top."""
    tidy(axes, "x")
    for y, line in enumerate(lines):
        values = line.means if name == RETURN else line.measured[name]
        axes.plot(values, np.full(len(values), y), "o", color=INK, alpha=0.35, ms=4)
        draw_interval(axes, y, seed_estimate(values), COLOURS[0], "D")
        mean = values.mean()
        axes.annotate(
            f"{mean:.2f}", (mean, y), (0, 7), textcoords="offset points", ha="center", size=8
        )
    axes.spines["left"].set_visible(False)
