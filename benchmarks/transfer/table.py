"""Scores under transfer as a table, with intervals over seeds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from agents.experiments.pydial_tables import shown
from benchmarks.transfer.axes import Axis, exchanges
from benchmarks.transfer.jobs import TransferJob
from dialgym.experiments.panel import Panel
from dialgym.experiments.statistics import Estimate, seed_estimate
from dialgym.experiments.tables import markdown_table


@dataclass(frozen=True)
class Cell:
    """A row of the table in one target.

    Attributes:
        success: (S,) per cent, a mean for each seed.
        returns: (S,) mean returns.
        home: whether nothing is changed.
    """

    success: np.ndarray
    returns: np.ndarray
    home: bool


Key = tuple[str, str]
"""The environment of training and what it has there that is changed; the name of the row."""
Cells = Mapping[Key, Mapping[str, Cell]]
"""By row of the table and name of the target."""


def cells_of(results: Mapping[TransferJob, Mapping[str, Any]]) -> dict[Key, dict[str, Cell]]:
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
    home = job.axis.home(place)
    return place.short if home == place.short else f"{place.short} ({home})"


def _cell(found: list[Mapping[str, Any]], home: bool) -> Cell:
    values = [one["statistics"] for one in found]
    success = np.array([100 * value["success"] for value in values])
    return Cell(success, np.array([value["return"] for value in values]), home)


def names_of(cells: Cells) -> list[str]:
    """The targets of all rows, in their order."""
    return list(dict.fromkeys(name for row in cells.values() for name in row))


def estimate(cell: Cell, metric: str) -> Estimate:
    """Success in per cent, or the return, with its interval over seeds."""
    return seed_estimate(cell.success if metric == "success" else cell.returns)


def as_markdown(axis: Axis, panel: Panel, results: Mapping[TransferJob, Mapping[str, Any]]) -> str:
    """The table of an axis and a panel, and what it means."""
    cells = cells_of(results)
    names = names_of(cells)
    rows = [["trained in", "policy", "seeds", *names]]
    for (place, name), row in cells.items():
        seeds = max(len(cell.success) for cell in row.values())
        rows.append([place, name, str(seeds), *(_text(row.get(n)) for n in names)])
    notes = [_caption(axis, panel, results)]
    if axis.name == "environments":
        notes.append(_exchanges(panel))
    table = markdown_table(rows)
    return f"## {axis.title}: {panel.name}\n\n{table}\n" + "\n".join(f"{n}\n" for n in notes)


def _text(cell: Cell | None) -> str:
    if cell is None:
        return "-"
    text = f"{shown(estimate(cell, 'success'))} / {cell.returns.mean():.2f}"
    return f"**{text}**" if cell.home else text


def _caption(axis: Axis, panel: Panel, results: Mapping[TransferJob, Mapping[str, Any]]) -> str:
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
