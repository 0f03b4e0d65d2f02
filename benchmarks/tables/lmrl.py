"""Learners of Wordle on LMRL-Gym's scale, and their gap to the optimal policy."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

import dialgym
from benchmarks.recipes.tables import with_interval
from dialgym.experiments.panel import Panel, PanelEnvironment, panel_named
from dialgym.experiments.row import SCRIPTED, ExperimentRow
from dialgym.experiments.row_files import read_rows
from dialgym.experiments.tables import markdown_table

LEAST = -6.0
"""The least return of a game."""
GAMES = 20_000
"""Stored games, from the panel's seed on, whose mean return is the middle of the scale."""
HEAD = ("environment", "learner", "return drawn", "greedy", "LMRL drawn", "greedy", "gap", "CPU s")


def lmrl_table(rows_folder: Path, name: str) -> str:
    """Learners of a panel of words, environment by environment."""
    panel = panel_named(name)
    rows = read_rows([rows_folder], panel)
    lines: list[Sequence[str]] = [HEAD]
    for environment in panel.environments:
        own = [row for row in rows if row.id == environment.id]
        trained = [row for row in own if not row.is_scripted]
        names = [learner for learner in panel.algorithms if any(r.name == learner for r in trained)]
        if not names:
            continue
        best = float(np.mean([_mean(r, SCRIPTED) for r in own if r.name == "optimal"] or [np.nan]))
        anchors = (LEAST, stored_mean(panel, environment), best)
        lines += [
            _line(environment.short, learner, [r for r in trained if r.name == learner], anchors)
            for learner in names
        ]
    return markdown_table(lines)


def _line(
    env: str, learner: str, rows: Sequence[ExperimentRow], anchors: tuple[float, float, float]
) -> list[str]:
    """The cells of a learner: its means over trainings with intervals."""
    returns = {how: np.array([_mean(r, how) for r in rows]) for how in ("drawn", "greedy")}
    scores = [
        with_interval(np.array([lmrl_score(value, *anchors) for value in means]), 1)
        for means in returns.values()
    ]
    shown = [with_interval(means, 2) for means in returns.values()]
    gap = f"{anchors[2] - max(means.mean() for means in returns.values()):.2f}"
    seconds = f"{np.mean([r.cpu_seconds for r in rows]):.0f}"
    return [env, learner, *shown, *scores, gap, seconds]


def lmrl_score(r: float, least: float, mean: float, best: float) -> float:
    """LMRL-Gym's normalisation: 0 for `least`, 50 for the `mean` of the data, 100 for `best`.

    Source: Abdulhai et al. (2023), section 5; nothing is below 0.
    """
    if r < mean:
        return max(50 * (r - least) / (mean - least), 0.0)
    return 50 + 50 * (r - mean) / (best - mean)


def stored_mean(panel: Panel, environment: PanelEnvironment) -> float:
    """Mean return of the games that learners read, estimated by the first of them."""
    data = environment.data
    assert data is not None, f"{panel.name} has no stored games"
    settings = data.policy_kwargs
    games = dialgym.collect(environment.id, data.policy, GAMES, data.seed, policy_kwargs=settings)
    return float(games.returns.mean())


def _mean(row: ExperimentRow, actions: str) -> float:
    """Mean return of a row, played so."""
    column = row.column("return", actions)
    assert column is not None
    return float(column.mean())
