"""World, learning curves and table of users of the policies of multi-domain dialogue."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from agents.experiments.job import read_curve_rows
from benchmarks.recipes.plots import draw_heat_map
from benchmarks.recipes.tables import Line, markdown
from dialgym.experiments.plots import new_figure, save_figure
from dialgym.experiments.statistics import seed_estimate

USERS = ("agenda", "agenda-unfriendly", "agenda-terse", "agenda-verbose", "learned", "madpl")


def prepare(folder: Path, data: str | None) -> dict[str, Any]:
    """The city: that of a folder with MultiWOZ's database and goal model, or the built-in one."""
    return {} if data is None else {"world": data}


def learning(line: Line) -> str:
    """Turns of the learner until training ended, and the share of successes on the way."""
    rows = read_curve_rows(line.jobs[0].folder)
    if not rows or "success" not in rows[0]:
        return ""
    picked = [rows[(len(rows) - 1) * k // 4] for k in range(5)]
    return ", ".join(f"{int(row['timesteps']) // 1000}k {row['success']}" for row in picked)


def users_table(table: Sequence[Line]) -> str:
    """Success of every system with each user, the rule system first, as Markdown."""
    columns = {"system": "benchmarks.recipes.multiwoz:system", **{user: user for user in USERS}}
    return markdown(table, columns, hidden=True)


def system(line: Line) -> str:
    """Name of a line."""
    return line.method


def plot_users(table: Sequence[Line], path: Path) -> None:
    """The table of users as a picture: a cell for each pair, brighter where more succeed.

    Raises:
        ImportError: matplotlib is not installed.
    """
    figure = new_figure(1.6 + 1.15 * len(USERS), 1.0 + 0.5 * len(table))
    values = [[line.figure(user) for user in USERS] for line in table]
    shades = draw_heat_map(
        figure.subplots(),
        np.mean(values, -1),
        [[_cell(scores) for scores in row] for row in values],
        (0, 1),
        ([line.method for line in table], [user.replace("agenda-", "") for user in USERS]),
    )
    figure.colorbar(shades, label="success; below it the 95 % interval over seeds")
    save_figure(figure, path)


def _cell(scores: np.ndarray) -> str:
    """The mean, and below it the interval of several seeds."""
    found = seed_estimate(scores, (0.0, 1.0))
    interval = f"\n{found.low:.2f} to {found.high:.2f}" if found.is_bounded else ""
    return f"{found.value:.3f}{interval}"
