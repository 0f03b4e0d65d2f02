"""Columns of Wordle's learners on LMRL-Gym's scale."""

from __future__ import annotations

from benchmarks.recipes.tables import Line
from dialgym.registry import entry_of

THEIRS = (-6.0, -4.12, -1.94)
"""Least, dataset's mean and greatest return of LMRL-Gym's Wordle (its Table 5)."""
LEAST = -6.0


def lmrl_score(r: float, least: float, mean: float, best: float) -> float:
    """LMRL-Gym's normalisation: 0 for `least`, 50 for the `mean` of the data, 100 for `best`.

    Source: Abdulhai et al. (2023), section 5; nothing is below 0.
    """
    if r < mean:
        return max(50 * (r - least) / (mean - least), 0.0)
    return 50 + 50 * (r - mean) / (best - mean)


def their_score(line: Line) -> str:
    """Score with LMRL-Gym's own anchors."""
    return f"{lmrl_score(line.means.mean(), *THEIRS):.1f}"


def own_score(line: Line) -> str:
    """Score with this list's anchors; the mean is that of the first seed's games."""
    best = entry_of(line.env_id).row.scores["expert"]
    mean = float(line.jobs[0].dialogues("games").returns.mean())
    return f"{lmrl_score(line.means.mean(), LEAST, mean, best):.1f}"
