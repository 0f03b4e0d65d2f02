"""Learners of Wordle on LMRL-Gym's scale, and their gap to the optimal policy.

    python -m benchmarks.tables.lmrl [--episodes 20000]

The middle of the scale is the mean return of the games that learners read, and its zero the least,
by the first of them: the command plays these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import dialgym
from benchmarks.recipes.tables import with_interval
from benchmarks.tables.records import (
    Figures,
    counted,
    from_counts,
    mean_and_half,
    read_record,
    run_measurement,
)
from dialgym.experiments.panel import Panel, PanelEnvironment, panel_named
from dialgym.experiments.row import SCRIPTED, ExperimentRow
from dialgym.experiments.row_files import read_rows
from dialgym.experiments.statistics import Interval
from dialgym.experiments.tables import markdown_table
from dialgym.registry import entry_of, make_task
from dialgym.tasks.base import SYSTEM, Facts

NAME, COMMAND = "lmrl", "python -m benchmarks.tables.lmrl"
PANELS = ("wordle", "wordle-deep", "wordle-large", "wordle-distilled")
HEAD = ("environment", "learner", "return drawn", "greedy", "LMRL drawn", "greedy", "gap", "CPU s")


def lmrl_table(rows_folder: Path, name: str) -> str:
    """Learners of a panel of words, environment by environment."""
    panel = panel_named(name)
    rows, stored = read_rows([rows_folder], panel), read_record(NAME)["figures"][name]
    lines: list[Sequence[str]] = [HEAD]
    for environment in panel.environments:
        own = [row for row in rows if row.id == environment.id]
        trained = [row for row in own if not row.is_scripted]
        names = [learner for learner in panel.algorithms if any(r.name == learner for r in trained)]
        if not names:
            continue
        best = float(
            np.mean([mean_return(r, SCRIPTED) for r in own if r.name == "optimal"] or [np.nan])
        )
        anchors = anchors_of(stored[environment.id], best)
        lines += [
            learner_line(environment, learner, [r for r in trained if r.name == learner], anchors)
            for learner in names
        ]
    return markdown_table(lines)


def return_bounds(place: PanelEnvironment) -> Interval:
    """The least and the greatest return that the learner's dialogues can have."""
    facts: Facts = make_task(entry_of(place.id), place.settings).facts
    return facts.returns[SYSTEM]


def learner_line(
    place: PanelEnvironment, learner: str, rows: Sequence[ExperimentRow], anchors: Anchors
) -> list[str]:
    """The cells of a learner: its means over trainings with intervals."""
    low, high = return_bounds(place)
    ends = lmrl_score(low, *anchors), lmrl_score(high, *anchors)
    returns = {how: np.array([mean_return(r, how) for r in rows]) for how in ("drawn", "greedy")}
    scores = [
        with_interval(np.array([lmrl_score(value, *anchors) for value in means]), 1, ends)
        for means in returns.values()
    ]
    shown = [with_interval(means, 2, (low, high)) for means in returns.values()]
    gap = f"{anchors.best - max(means.mean() for means in returns.values()):.2f}"
    known = [r.cpu_seconds for r in rows if r.cpu_seconds is not None]  # of a GPU's there are none
    seconds = f"{np.mean(known):.0f}" if known else ""
    return [place.short, learner, *shown, *scores, gap, seconds]


class Anchors(NamedTuple):
    """Points of LMRL-Gym's scale, in its order: the returns that score 0, 50 and 100."""

    least: float
    mean: float
    best: float


def anchors_of(stored: Mapping[str, int], best: float) -> Anchors:
    """The scale of stored dialogues, whose returns are counted, and of the optimal policy."""
    returns = from_counts(stored)
    return Anchors(float(returns.min()), float(returns.mean()), best)


def lmrl_score(r: float, least: float, mean: float, best: float) -> float:
    """LMRL-Gym's normalisation: 0 for `least`, 50 for the `mean` of the data, 100 for `best`.

    Source: Abdulhai et al. (2023), section 5; nothing is below 0.
    """
    if r < mean:
        return max(50 * (r - least) / (mean - least), 0.0)
    return 50 + 50 * (r - mean) / (best - mean)


def our_score(r: float, random: float, best: float) -> float:
    """0 for the mean return of the `random` policy, 100 for that of the `best` one."""
    return 100 * (r - random) / (best - random)


def measure(games: int) -> dict[str, Any]:
    """Returns of the first stored games of each panel and environment, counted."""
    panels = [panel_named(name) for name in PANELS]
    return {p.name: {e.id: stored_returns(p, e, games) for e in p.environments} for p in panels}


def stored_returns(panel: Panel, environment: PanelEnvironment, games: int) -> dict[str, int]:
    """Returns of the first games that learners read, counted."""
    data = environment.data
    assert data is not None, f"{panel.name} has no stored games"
    policy = {"name": data.policy, **data.policy_kwargs}
    played = dialgym.evaluate(policy, environment.id, games, (data.seed,))
    return counted(played.by_id[environment.id].returns)


def table(figures: Figures) -> str:
    """Mean returns of stored games with 95 % intervals."""
    rows = [
        (name, env_id, mean_and_half(from_counts(returns)))
        for name, by_id in figures.items()
        for env_id, returns in by_id.items()
    ]
    return markdown_table([("panel", "environment", "stored return"), *rows])


def mean_return(row: ExperimentRow, actions: str) -> float:
    """Mean return of a row, played so."""
    column = row.column("return", actions)
    assert column is not None
    return float(column.mean())


if __name__ == "__main__":
    run_measurement(__doc__, NAME, COMMAND, 20_000, measure, table)
