"""Plots of results: bars with intervals, learning curves, boards of games."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dialgym.experiments.curves import Curve, smooth
from dialgym.experiments.result import Result
from dialgym.experiments.tables import PREFIX, labels
from dialgym.io.files import write_atomically
from dialgym.optional import require

if TYPE_CHECKING:
    from dialgym.experiments.benchmark import Game

# Told apart by colour-blind readers too (Okabe and Ito, 2008), the trained agents' first.
AGENTS = ("#d55e00", "#cc79a7", "#f0e442", "#56b4e9")
SCRIPTED = {"random": "#9a9a9a", "random-mixture": "#56b4e9", "optimal": "#009e73"}
INK, FAINT = "#333333", "#dddddd"


def plot_scores(results: Sequence[Result], path: Path) -> None:
    """Bars with 95 % intervals, a group for each environment, the mean return on top of each.

    Normalised scores where all environments have references, else mean returns.

    Raises:
        ImportError: matplotlib is not installed.
    """
    ids = labels(results)
    scored = all(part.scores is not None for r in results for part in r.by_id.values())
    width = 0.84 / len(results)
    figure, axes = _figure(max(6.0, 1.2 + 0.44 * len(ids) * (len(results) + 1)), 4.2)
    for i, (result, colour) in enumerate(zip(results, _colours(results))):
        own = {(env_id, result.label(env_id)) for env_id in result.by_id}
        where = [k for k, place in enumerate(ids) if place in own]
        parts = [result.by_id[ids[k][0]] for k in where]
        bars: Any = [p.score if scored else p.mean_return for p in parts]
        bounds: Any = [p.score_interval if scored else p.interval for p in parts]
        x = np.array(where) + (i - (len(results) - 1) / 2) * width
        axes.bar(x, bars, 0.9 * width, color=colour, label=result.name, zorder=2)
        spread = np.abs(np.array(bounds).T - bars)
        axes.errorbar(x, bars, spread, fmt="none", ecolor=INK, elinewidth=1, capsize=2, zorder=3)
        for place, part, bound in zip(x, parts, bounds):
            _label(axes, place, bound, part.mean_return)
    axes.set_xticks(range(len(ids)), [label.removeprefix(PREFIX) for _, label in ids])
    axes.tick_params(axis="x", length=0)
    axes.set_xlim(-0.6, len(ids) - 0.4)
    if scored:
        axes.axhline(100, color=INK, linewidth=0.8, linestyle=(0, (4, 3)), zorder=1)
    axes.axhline(0, color=INK, linewidth=0.8, zorder=1)
    axes.margins(y=0.12)
    axes.set_ylabel("score (0 random, 100 expert)" if scored else "mean return")
    axes.set_title("above or below each bar: mean return", fontsize=8, color="#777777", loc="right")
    figure.legend(loc="outside upper left", ncols=4, frameon=False, fontsize=9)
    _save(figure, path)


def plot_curves(curves: Sequence[Curve], path: Path) -> None:
    """Return against environment steps, raw and smoothed, and lines at the reference returns.

    Raises:
        ImportError: matplotlib is not installed.
    """
    figure, axes = _figure(6.4, 4.0)
    last = max(float(curve.steps[-1]) for curve in curves)
    for name, value in curves[0].references.items():
        colour = SCRIPTED.get(name, INK)
        axes.axhline(value, color=colour, linewidth=1.2, linestyle=(0, (4, 3)), zorder=1)
        axes.annotate(f" {name}", (1, value), xycoords=("axes fraction", "data"), va="center",
                      fontsize=8.5, color=colour, annotation_clip=False)  # fmt: skip
    for curve, colour in zip(curves, AGENTS * len(curves)):
        axes.plot(curve.steps, curve.returns, color=colour, alpha=0.25, linewidth=0.8)
        smoothed = smooth(curve.returns)
        axes.plot(curve.steps, smoothed, color=colour, linewidth=2, label=curve.name)
    axes.set_xlim(0, last)
    axes.margins(y=0.08)
    axes.xaxis.set_major_formatter(_thousands())
    axes.set_xlabel("environment steps (tokens)")
    axes.set_ylabel("mean return while learning")
    figure.legend(loc="outside upper left", ncols=2, frameon=False, fontsize=9)
    _save(figure, path)


def plot_games(games: Sequence["Game"], path: Path, title: str) -> None:
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
    figure = _module("figure").Figure(size, layout="constrained")
    grid = figure.subplots(len(jobs), len(names), squeeze=False)
    for axes in grid.flat:
        axes.axis("off")
    for game in games:
        axes = grid[jobs.index(game.job), names.index(game.policy)]
        axes.set_title(_heading(game, first=game.job == jobs[0]), fontsize=9, color=INK)
        axes.imshow(game.picture)
    figure.suptitle(title, fontsize=10, color=INK)
    _save(figure, path)


def _heading(game: "Game", first: bool) -> str:
    gained = f"return {game.gained:g}"
    return f"{game.policy}\n\n{gained}" if first else gained


def _figure(width: float, height: float) -> tuple[Any, Any]:
    figure = _module("figure").Figure((width, height), layout="constrained")
    axes = figure.subplots()
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color=FAINT, linewidth=0.6, zorder=0)
    axes.set_axisbelow(True)
    return figure, axes


def _label(axes: Any, x: float, bounds: tuple[float, float], value: float) -> None:
    """The raw return beyond the end of a bar and its interval."""
    low, high = bounds
    above = high + low >= 0
    axes.annotate(f"{value:.2f}", (x, high if above else low), xytext=(0, 3 if above else -3),
                  textcoords="offset points", ha="center", va="bottom" if above else "top",
                  fontsize=7, color=INK)  # fmt: skip


def _colours(results: Sequence[Result]) -> list[str]:
    """Fixed colours for the usual scripted policies, others in turn."""
    others = iter(AGENTS * len(results))
    return [SCRIPTED.get(result.policy) or next(others) for result in results]


def _thousands() -> Any:
    return _module("ticker").FuncFormatter(lambda x, _: f"{x / 1000:,.0f}k" if x else "0")


def _save(figure: Any, path: Path) -> None:
    write_atomically(path, lambda temporary: figure.savefig(temporary, dpi=160))


def _module(name: str) -> Any:
    return require(f"matplotlib.{name}", "ui", "drawing pictures")
