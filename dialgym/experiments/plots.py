"""Pictures of results: bars with intervals, learning curves, games; and their common parts."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dialgym.experiments.curves import Curve, smooth
from dialgym.experiments.result import PREFIX, Result, labels
from dialgym.experiments.samples import SampleDialogue
from dialgym.experiments.statistics import Estimate
from dialgym.io.files import save_figure
from dialgym.optional import require

COLOURS = ("#d55e00", "#0072b2", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#332288")
"""Told apart by colour-blind readers too (Okabe and Ito 2008); with `STYLES` for more lines."""
STYLES = ("-", (0, (5, 1.5)), (0, (1.2, 1.2)))
DASHED = (0, (4, 3))
INK, FAINT, GREY = "#333333", "#dddddd", "#9a9a9a"
SCRIPTED = {"random": GREY, "random-mixture": "#56b4e9", "optimal": "#009e73", "handcrafted": INK}


# What pictures are made of


def new_figure(width: float, height: float) -> Any:
    """An empty figure, in inches.

    Raises:
        ImportError: matplotlib is not installed.
    """
    return _module("figure").Figure((width, height), layout="constrained")


def check_picture(path: Path) -> None:
    """Raise a ValueError for a name whose ending is no format of pictures, before they are drawn.

    Raises:
        ImportError: matplotlib is not installed.
    """
    canvas = new_figure(1, 1).canvas
    if path.suffix and path.suffix[1:].lower() not in canvas.get_supported_filetypes():
        raise ValueError(
            f"{path}: expected a name that ends in .png, .svg or .pdf, got {path.suffix!r}"
        )


def tidy(axes: Any, axis: str = "y") -> None:
    """Give axes faint lines across one of them, and no frame."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis=axis, color=FAINT, linewidth=0.6, zorder=0)
    axes.set_axisbelow(True)


def add_legend(figure: Any, columns: int, lines: Mapping[str, Any] | None = None) -> None:
    """Name the lines of a figure above it; these alone, by name, if they are given."""
    given = [] if lines is None else [[*lines.values()], [*lines]]
    figure.legend(*given, loc="outside upper left", ncols=columns, frameon=False, fontsize=8.5)


def draw_band(
    axes: Any,
    x: Sequence[float],
    estimates: Sequence[Estimate],
    colour: str,
    **line: Any,
) -> Any:
    """Draw figures as a line, in a band of their intervals where these are known.

    Args:
        axes: to draw on.
        x, estimates: the points.
        colour: of both.
        line: as for `Axes.plot`.

    Returns:
        The line.
    """
    (drawn,) = axes.plot(x, [e.value for e in estimates], color=colour, **line)
    if all(e.is_bounded for e in estimates):
        low, high = np.array([e.interval for e in estimates]).T
        axes.fill_between(x, low, high, color=colour, alpha=0.15, linewidth=0)
    return drawn


MARKERS = ("o", "s", "^", "D")


def draw_over(axes: Any, curves: Mapping[str, Sequence[Estimate]], values: Sequence[Any]) -> None:
    """Draw figures with their intervals over the values of a setting, a line for each name.

    Points of neighbouring lines are drawn a little apart, so that all can be seen. Values that are
    no numbers are put side by side.
    """
    numeric = all(isinstance(v, int | float) and not isinstance(v, bool) for v in values)
    places = np.array(values if numeric else range(len(values)), np.float64)
    apart = 0.01 * (np.ptp(places) or 1)
    for i, (name, estimates) in enumerate(curves.items()):
        x = places + apart * (i - (len(curves) - 1) / 2)
        y, bounds = [e.value for e in estimates], np.array([e.interval for e in estimates])
        spread = np.abs(bounds.T - y)
        style = {"color": COLOURS[i % len(COLOURS)], "marker": MARKERS[i % len(MARKERS)]}
        axes.errorbar(x, y, spread, ms=4, capsize=2, label=name, **style)
    if not numeric:
        axes.set_xticks(places, [str(value) for value in values])


def draw_interval(
    axes: Any, y: float, estimate: Estimate, colour: str, marker: str = "o", filled: bool = True
) -> None:
    """Draw a figure as a marker on the line of its interval, at a height."""
    if estimate.is_bounded:
        axes.plot(estimate.interval, [y, y], color=colour, linewidth=1.6)
    fill = colour if filled else "white"
    axes.plot(estimate.value, y, marker, color=colour, mfc=fill, ms=5, zorder=3)


def name_rows(axes: Any, names: Sequence[str]) -> None:
    """Name the heights 0, 1, ... of axes, the first at the bottom."""
    axes.set_yticks(range(len(names)), names, fontsize=8)
    axes.set_ylim(-0.6, len(names) - 0.4)


def _module(name: str) -> Any:
    return require(f"matplotlib.{name}", "ui", "drawing pictures")


# Pictures of a benchmark


def plot_scores(results: Sequence[Result], path: Path) -> None:
    """Bars with 95 % intervals, a group for each environment, the mean return on top of each.

    Normalised scores where all environments have references, else mean returns.

    Raises:
        ImportError: matplotlib is not installed.
    """
    ids = labels(results)
    scored = all(part.scores is not None for r in results for part in r.by_id.values())
    width = 0.84 / len(results)
    figure = new_figure(max(6.0, 1.2 + 0.44 * len(ids) * (len(results) + 1)), 4.2)
    axes = figure.subplots()
    tidy(axes)
    for i, (result, colour) in enumerate(zip(results, _colours(results))):
        own = {(env_id, result.label(env_id)) for env_id in result.by_id}
        where = [k for k, pair in enumerate(ids) if pair in own]
        parts = [result.by_id[ids[k][0]] for k in where]
        bars: Any = [p.score if scored else p.mean_return for p in parts]
        bounds: Any = [p.score_interval if scored else p.interval for p in parts]
        x = np.array(where) + (i - (len(results) - 1) / 2) * width
        axes.bar(x, bars, 0.9 * width, color=colour, label=result.name, zorder=2)
        spread = np.abs(np.array(bounds).T - bars)
        axes.errorbar(x, bars, spread, fmt="none", ecolor=INK, elinewidth=1, capsize=2, zorder=3)
        for at, part, bound in zip(x, parts, bounds):
            _label(axes, at, bound, part.mean_return)
    axes.set_xticks(range(len(ids)), [label.removeprefix(PREFIX) for _, label in ids])
    axes.tick_params(axis="x", length=0)
    axes.set_xlim(-0.6, len(ids) - 0.4)
    if scored:
        axes.axhline(100, color=INK, linewidth=0.8, linestyle=DASHED, zorder=1)
    axes.axhline(0, color=INK, linewidth=0.8, zorder=1)
    axes.margins(y=0.12)
    axes.set_ylabel("score (0 random, 100 expert)" if scored else "mean return")
    axes.set_title("above or below each bar: mean return", fontsize=8, color="#777777", loc="right")
    add_legend(figure, 4)
    save_figure(figure, path)


def plot_curves(curves: Sequence[Curve], path: Path) -> None:
    """Return against environment steps, raw and smoothed, and lines at the reference returns.

    Raises:
        ImportError: matplotlib is not installed.
    """
    figure = new_figure(6.4, 4.0)
    axes = figure.subplots()
    tidy(axes)
    last = max(float(curve.steps[-1]) for curve in curves)
    for name, value in curves[0].references.items():
        colour = SCRIPTED.get(name, INK)
        axes.axhline(value, color=colour, linewidth=1.2, linestyle=DASHED, zorder=1)
        axes.annotate(f" {name}", (1, value), xycoords=("axes fraction", "data"), va="center",
                      fontsize=8.5, color=colour, annotation_clip=False)  # fmt: skip
    for curve, colour in zip(curves, COLOURS * len(curves)):
        axes.plot(curve.steps, curve.returns, color=colour, alpha=0.25, linewidth=0.8)
        smoothed = smooth(curve.returns)
        axes.plot(curve.steps, smoothed, color=colour, linewidth=2, label=curve.name)
    axes.set_xlim(0, last)
    axes.margins(y=0.08)
    axes.xaxis.set_major_formatter(_thousands())
    axes.set_xlabel("environment steps (tokens)")
    axes.set_ylabel("mean return while learning")
    add_legend(figure, 2)
    save_figure(figure, path)


def plot_games(games: Sequence[SampleDialogue], path: Path, title: str) -> None:
    """The pictures of the games: a column for each policy, a row for each hidden state.

    Raises:
        ImportError: matplotlib is not installed.
    """
    names = list(dict.fromkeys(game.policy for game in games))
    jobs = list(dict.fromkeys(game.job for game in games))
    pictures = [game.picture for game in games if game.picture is not None]
    shapes = [picture.shape for picture in pictures]
    height = max(rows / columns for rows, columns, _ in shapes)
    size = (1.8 * len(names) + 0.2, (1.8 * height + 0.3) * len(jobs) + 0.6)
    figure = new_figure(*size)
    grid = figure.subplots(len(jobs), len(names), squeeze=False)
    for axes in grid.flat:
        axes.axis("off")
    for game in games:
        axes = grid[jobs.index(game.job), names.index(game.policy)]
        axes.set_title(_heading(game, first=game.job == jobs[0]), fontsize=9, color=INK)
        axes.imshow(game.picture)
    figure.suptitle(title, fontsize=10, color=INK)
    save_figure(figure, path)


def _heading(game: SampleDialogue, first: bool) -> str:
    text = f"return {game.episode_return:g}"
    return f"{game.policy}\n\n{text}" if first else text


def _label(axes: Any, x: float, bounds: tuple[float, float], value: float) -> None:
    """The raw return beyond the end of a bar and its interval."""
    low, high = bounds
    above = high + low >= 0
    axes.annotate(f"{value:.2f}", (x, high if above else low), xytext=(0, 3 if above else -3),
                  textcoords="offset points", ha="center", va="bottom" if above else "top",
                  fontsize=7, color=INK)  # fmt: skip


def _colours(results: Sequence[Result]) -> list[str]:
    """Fixed colours for the usual scripted policies, others in turn."""
    free = [colour for colour in COLOURS if colour not in SCRIPTED.values()]
    others = iter(free * len(results))
    return [SCRIPTED.get(result.policy) or next(others) for result in results]


def _thousands() -> Any:
    return _module("ticker").FuncFormatter(lambda x, _: f"{x / 1000:,.0f}k" if x else "0")
