"""Scores under transfer as a table, curves with bands, and heat maps; intervals are over seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from agents.experiments.pydial_plots import FIXED
from agents.experiments.pydial_tables import shown
from benchmarks.transfer.axes import AXES, ENVIRONMENTS, ERRORS, exchanges, home_of
from benchmarks.transfer.jobs import TransferJob
from dialgym.experiments.panel import Panel
from dialgym.experiments.plots import COLOURS, DASHED, INK, add_legend, draw_band, new_figure, tidy
from dialgym.experiments.statistics import Estimate, seed_estimate
from dialgym.experiments.tables import markdown_table
from dialgym.io.files import save_figure

ACROSS = 3
"""Curves' panels beside each other."""
LABELS = {"success": "success, %", "return": "mean return"}


@dataclass(frozen=True)
class Cell:
    """A row of the table in one target.

    Attributes:
        success: (S,) per cent, a mean for each seed.
        returns: (S,) mean returns.
        home: True if nothing is changed.
    """

    success: np.ndarray
    returns: np.ndarray
    home: bool

    def estimate(self, metric: str) -> Estimate:
        """Success in per cent, or the return, with its interval over seeds."""
        if metric == "success":
            return seed_estimate(self.success, (0.0, 100.0))
        return seed_estimate(self.returns)


Results = Mapping[TransferJob, Mapping[str, Any]]
Key = tuple[str, str]
"""The environment of training and what it has there that is changed; the name of the row."""
Cells = Mapping[Key, Mapping[str, Cell]]
"""By row of the table and name of the target."""


def cells_of(results: Results) -> dict[Key, dict[str, Cell]]:
    """The figures of all seeds together, in the order of the jobs."""
    groups: dict[Key, dict[str, list[TransferJob]]] = {}
    for job in results:
        key = _trained_in(job), job.row.name
        groups.setdefault(key, {}).setdefault(job.target.name, []).append(job)
    return {
        key: {
            name: _cell([results[job] for job in jobs], jobs[0].home) for name, jobs in of.items()
        }
        for key, of in groups.items()
    }


def _trained_in(job: TransferJob) -> str:
    """``CamRestaurants-Env5-v0 (unfriendly)``."""
    place = job.panel.environment(job.row.id)
    home = home_of(job.axis, place)
    return place.short if home == place.short else f"{place.short} ({home})"


def _cell(found: list[Mapping[str, Any]], home: bool) -> Cell:
    values = [one["statistics"] for one in found]
    success = np.array([100 * value["success"] for value in values])
    return Cell(success, np.array([value["return"] for value in values]), home)


def _names_of(cells: Cells) -> list[str]:
    """The targets of all rows, in their order."""
    return list(dict.fromkeys(name for row in cells.values() for name in row))


# The table


def as_markdown(axis: str, panel: Panel, results: Results) -> str:
    """The table of an axis and a panel, and what it means."""
    cells = cells_of(results)
    names = _names_of(cells)
    rows = [["trained in", "policy", "seeds", *names]]
    for (place, name), row in cells.items():
        seeds = max(len(cell.success) for cell in row.values())
        rows.append([place, name, str(seeds), *(_text(row.get(n)) for n in names)])
    notes = [_caption(panel, results)]
    if axis == ENVIRONMENTS:
        notes.append(_exchanges(panel))
    table = markdown_table(rows)
    return f"## {AXES[axis]}: {panel.name}\n\n{table}\n" + "\n".join(f"{n}\n" for n in notes)


def _text(cell: Cell | None) -> str:
    if cell is None:
        return "-"
    text = f"{shown(cell.estimate('success'))} / {cell.returns.mean():.2f}"
    return f"**{text}**" if cell.home else text


def _caption(panel: Panel, results: Results) -> str:
    episodes = sorted({job.episodes for job in results})
    sources = sorted({str(result["source"]) for result in results.values()})
    data = "" if sources == ["as named"] else f" Data: {', '.join(sources)}."
    return (
        f"Models of {panel.label}, unchanged. Success in per cent with its 95 % interval over "
        "seeds (Student's t; none for one seed) / mean return, of "
        f"{' or '.join(map(str, episodes))} dialogues a seed, played in the way of training. Bold: "
        f"the environment unchanged.{data}"
    )


def _exchanges(panel: Panel) -> str:
    groups = [f"- {spaces}: {', '.join(names)}" for spaces, names in exchanges(panel)]
    return (
        "A policy of tokens or acts can be played where what it sees and does is the same, its "
        "vocabulary too; so within each of these groups, and not from one to another (-):\n\n"
        + "\n".join(groups)
    )


# Pictures


def draw(axis: str, cells: Cells, path: Path, metric: str = "success") -> None:
    """Curves where targets are error rates, else heat maps.

    Args:
        axis: what is changed.
        cells: the figures.
        path: of the picture.
        metric: success or return.

    Raises:
        ImportError: matplotlib is not installed.
    """
    (_curves if axis == ERRORS else _maps)(cells, path, metric)


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
    add_legend(figure, 6, lines)
    save_figure(figure, path)


def _curve(axes: Any, row: Mapping[str, Cell], metric: str, colour: str) -> Any:
    x = [float(name.removesuffix(" %")) for name in row]
    found, style = [cell.estimate(metric) for cell in row.values()], {"marker": "o", "ms": 3}
    line = draw_band(axes, x, found, colour, linewidth=1.5, **style)
    for at, cell in zip(x, row.values()):
        if cell.home:
            axes.axvline(at, color=INK, linewidth=0.8, linestyle=DASHED, zorder=0)
    return line


def _colour(name: str, names: list[str]) -> str:
    learned = [other for other in names if other not in FIXED]
    return FIXED.get(name) or COLOURS[learned.index(name) % len(COLOURS)]


def _maps(cells: Cells, path: Path, metric: str) -> None:
    """A map for each name: environments of training downwards, targets across."""
    rows: dict[str, list[str]] = {}
    for place, name in cells:
        rows.setdefault(name, []).append(place)
    targets = _names_of(cells)
    means = [cell.estimate(metric).value for row in cells.values() for cell in row.values()]
    span = (0.0, 100.0) if metric == "success" else (min(means), max(means))
    height = sum(0.55 * len(places) + 0.6 for places in rows.values()) + 0.9
    figure = new_figure(2.6 + 1.15 * len(targets), height)
    ratios = [len(places) for places in rows.values()]
    grid = figure.subplots(len(rows), 1, squeeze=False, height_ratios=ratios)
    for axes, (name, places) in zip(grid.flat, rows.items()):
        found = [[cells[place, name].get(target) for target in targets] for place in places]
        known = [[cell.estimate(metric) if cell else None for cell in row] for row in found]
        values = [[np.nan if e is None else e.value for e in row] for row in known]
        texts = [["" if e is None else _spelled(e) for e in row] for row in known]
        above = targets if axes is grid[0, 0] else [""] * len(targets)
        shades = draw_heat_map(axes, np.array(values), texts, span, (places, above))
        axes.set_title(name, fontsize=9, color=INK, loc="left")
        for y, x in np.ndindex(len(places), len(targets)):
            if (cell := found[y][x]) is not None and cell.home:
                _frame(axes, x, y)
    figure.colorbar(shades, ax=grid, label=f"{LABELS[metric]}; framed: unchanged", shrink=0.9)
    save_figure(figure, path)


def _spelled(found: Estimate) -> str:
    """A figure with its interval below it."""
    text = f"{found.value:.1f}"
    if not found.is_bounded:
        return text
    return f"{text}\n{found.low:.1f} to {found.high:.1f}"


def _frame(axes: Any, x: int, y: int) -> None:
    from matplotlib.patches import Rectangle

    corner = (x - 0.48, y - 0.46)
    axes.add_patch(Rectangle(corner, 0.96, 0.92, fill=False, color="#d55e00", linewidth=1.6))


# Heat maps

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
