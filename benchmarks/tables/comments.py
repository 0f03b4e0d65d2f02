"""Offline learners of comments by reward, each played both ways."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.recipes.tables import with_interval
from dialgym.experiments.panel import panel_named
from dialgym.experiments.row import ExperimentRow
from dialgym.experiments.row_files import read_rows
from dialgym.experiments.tables import markdown_table

ACTIONS = ("greedy", "drawn")


def comments_table(rows_folder: Path) -> str:
    """Mean returns of the panel `comments`, by environment and actions, and numbers of seeds."""
    panel = panel_named("comments")
    rows = read_rows([rows_folder], panel)
    ids = [environment.id for environment in panel.environments]
    head = [
        f"{env.short.removesuffix('-v0')}, {actions}"
        for env in panel.environments
        for actions in ACTIONS
    ]
    lines = [["learner", *head, "seeds"]]
    for name in (*panel.references, *panel.algorithms):
        own = [row for row in rows if row.name == name]
        if own:
            by_id = [[row for row in own if row.id == env_id] for env_id in ids]
            cells = [_mean(found, actions) for found in by_id for actions in ACTIONS]
            lines.append([name, *cells, _seeds([len(found) for found in by_id])])
    return markdown_table(lines)


def _mean(rows: Sequence[ExperimentRow], actions: str) -> str:
    """Mean return over seeds with its interval; a scripted policy has one way to play."""
    played = [row.values["episodes"] for row in rows]
    means = [np.mean(parts.get(actions, parts.get("scripted"))["returns"]) for parts in played]
    return with_interval(np.array(means), 2) if means else "-"


def _seeds(counts: Sequence[int]) -> str:
    """Fewest and most in an environment."""
    least, most = min(counts), max(counts)
    return f"{least}" if least == most else f"{least} to {most}"
