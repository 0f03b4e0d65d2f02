"""Learners of Wordle with 200 words on LMRL-Gym's scale."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.recipes.tables import with_interval
from dialgym.experiments.panel import panel_named
from dialgym.experiments.row_files import read_rows
from dialgym.experiments.tables import markdown_table

LEARNERS = ("bc-30", "bc-long", "bc-ppo-separate", "ilql")
LEAST, STORED = -6.0, -2.92
"""The least return of a game, and the mean of the 50,000 stored ones of 200 words."""


def lmrl_table(rows_folder: Path) -> str:
    """Learners of 200 words on LMRL-Gym's scale, whose best is the optimal policy here."""
    rows = [
        r for r in read_rows([rows_folder], panel_named("wordle-distilled")) if r.id.endswith("Wordle-200-v0")
    ]
    best = float(np.mean([_mean(r, "scripted") for r in rows if r.name == "optimal"]))
    lines = [["learner", "drawn", "greedy", "greedy, by seed", "CPU s a run"]]
    for name in LEARNERS:
        own = sorted((r for r in rows if r.name == name), key=lambda r: r.seed)
        returns = {how: [_mean(r, how) for r in own] for how in ("drawn", "greedy")}
        drawn, greedy = (
            np.array([lmrl_score(value, LEAST, STORED, best) for value in means])
            for means in returns.values()
        )
        seconds = np.mean([r.cpu_seconds for r in own])
        by_seed = ", ".join(f"{score:.1f}" for score in greedy)
        shown = [with_interval(drawn, 1), with_interval(greedy, 1), by_seed, f"{seconds:.0f}"]
        lines.append([name, *shown])
    return markdown_table(lines)


def lmrl_score(r: float, least: float, mean: float, best: float) -> float:
    """LMRL-Gym's normalisation: 0 for `least`, 50 for the `mean` of the data, 100 for `best`.

    Source: Abdulhai et al. (2023), section 5; nothing is below 0.
    """
    if r < mean:
        return max(50 * (r - least) / (mean - least), 0.0)
    return 50 + 50 * (r - mean) / (best - mean)


def _mean(row: Any, actions: str) -> float:
    """Mean return of a row, played so."""
    return float(row.column("return", actions).mean())
