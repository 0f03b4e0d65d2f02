"""Costs of panels and the share that is done."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from dialgym.experiments.ranking import Ranking
from dialgym.experiments.tables import markdown_table


class PanelCosts(NamedTuple):
    """Cells and costs of a panel.

    Attributes:
        panel: its name, as the tables have it.
        cells: trainings and scripted policies that are there, a seed in an environment each.
        wanted: those that the panel asks for; None where that is not known.
        others: cells of rows that the panel does not ask for, such as your own.
        seeds: fewest and most of a row in an environment, and those that the panel asks for.
        cpu_seconds: of all cells; None where it is not known.
    """

    panel: str
    cells: int
    wanted: int | None
    others: int
    seeds: tuple[int, int, int]
    cpu_seconds: float | None


def panel_costs(
    rankings: Sequence[Ranking], wanted: int | None, cpu_seconds: float | None
) -> PanelCosts:
    """Count the cells of a panel, and sum up their costs.

    Args:
        rankings: of the panel, one for each source of data.
        wanted: cells that the panel asks for.
        cpu_seconds: of all cells, where the rows do not say.
    """
    panel = rankings[0].panel
    asked = {*panel.algorithms, *panel.references}
    policies = [policy for ranking in rankings for policy in ranking.rows]
    runs = [(one.name, len(part.seeds)) for one in policies for part in one.scores.values()]
    own = [n for name, n in runs if name in asked or not asked]
    costs = [row.values["cost"].get("cpu_seconds") for one in policies for row in one.rows]
    known = [float(cost) for cost in costs if isinstance(cost, int | float)]
    seeds = [n for _, n in runs] or [0]
    return PanelCosts(
        panel.name,
        sum(own),
        wanted,
        sum(n for _, n in runs) - sum(own),
        (min(seeds), max(seeds), panel.seeds),
        sum(known) if known else cpu_seconds,
    )


def costs_as_markdown(totals: Sequence[PanelCosts]) -> str:
    """A table with a line for each panel, and one for all."""
    head = ["panel", "cells", "others' cells", "seeds", "CPU h"]
    rows = [[t.panel, _cells(t), str(t.others), _seeds(t), _hours(t.cpu_seconds)] for t in totals]
    spent = [t.cpu_seconds for t in totals if t.cpu_seconds is not None]
    cells = sum(t.cells for t in totals)
    whole = ["all", str(cells), str(sum(t.others for t in totals)), "", _hours(sum(spent))]
    return (
        f"## What is there\n\n{markdown_table([head, *rows, whole])}\n"
        "A cell is a training, or a scripted policy, with one seed in one environment: those that "
        "the panel asks for, and others. Seeds: fewest and most of a row in an environment, of "
        "those asked for. CPU hours are of all cells that are there: training, stored dialogues "
        "and scoring, what was cut off and gone on with included; of runs that another command "
        "made, training alone.\n"
    )


def _cells(total: PanelCosts) -> str:
    return f"{total.cells}" if total.wanted is None else f"{total.cells} of {total.wanted}"


def _seeds(total: PanelCosts) -> str:
    low, high, asked = total.seeds
    return f"{high if low == high else f'{low} to {high}'} of {asked}"


def _hours(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds / 3600:.2f}"
