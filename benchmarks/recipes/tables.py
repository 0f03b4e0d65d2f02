"""Scores of several training seeds as a table, with intervals over the seeds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from benchmarks.recipes.runs import Run, Score
from dialgym.experiments.statistics import Estimate, format_estimate, iqm, seed_estimate
from dialgym.experiments.tables import markdown_table
from dialgym.registry import entry_of


@dataclass(frozen=True)
class Line:
    """A method in an environment, over S training seeds of E episodes each."""

    method: str
    env_id: str
    returns: np.ndarray  # (S, E)
    solved: np.ndarray  # (S, E)
    runs: tuple[Run, ...] = ()  # (S,)
    metrics: Mapping[str, np.ndarray] = field(default_factory=dict)  # (S, E) each; see `Score`

    @property
    def means(self) -> np.ndarray:
        """(S,) mean return of each seed."""
        return self.returns.mean(1)

    @property
    def score(self) -> float:
        """100 (r - random) / (expert - random), with the registry's reference returns."""
        entry = entry_of(self.env_id)
        scores = entry.row.references(entry.stand_in)
        return 100 * (self.means.mean() - scores["random"]) / (scores["expert"] - scores["random"])


def lines(scores: Sequence[Score]) -> list[Line]:
    """The scores of each method and environment together, in their order."""
    groups: dict[tuple[str, str], list[Score]] = {}
    for score in scores:
        groups.setdefault((score.run.method, score.run.env_id), []).append(score)
    return [_line(group) for group in groups.values()]


def _line(group: Sequence[Score]) -> Line:
    """Of the scores of one row, a seed each; of metrics those that all of them have."""
    first = group[0]
    names = [name for name in first.metrics if all(name in s.metrics for s in group)]
    return Line(
        first.run.method,
        first.run.env_id,
        np.stack([s.returns for s in group]),
        np.stack([s.solved for s in group]),
        tuple(s.run for s in group),
        {name: np.stack([s.metrics[name] for s in group]) for name in names},
    )


def lmrl_score(r: float, least: float, mean: float, best: float) -> float:
    """LMRL-Gym's normalisation: 0 for `least`, 50 for the `mean` of the data, 100 for `best`.

    Source: Abdulhai et al. (2023), section 5; nothing is below 0.
    """
    if r < mean:
        return max(50 * (r - least) / (mean - least), 0.0)
    return 50 + 50 * (r - mean) / (best - mean)


Column = Callable[[Line], str]

BASE: dict[str, Column] = {
    "environment": lambda line: entry_of(line.env_id).label,
    "method": lambda line: line.method,
    "seeds": lambda line: str(len(line.returns)),
    "mean return": lambda line: with_interval(line.means),
    "IQM": lambda line: f"{iqm(line.returns):.3f}",
    "success": lambda line: f"{100 * line.solved.mean():.1f} %",
    "score": lambda line: f"{line.score:.1f}",
}
"""The columns of every table that does not choose among them."""


def markdown(
    table: Sequence[Line], more: dict[str, Column] | None = None, base: Sequence[str] = tuple(BASE)
) -> str:
    """A Markdown table of the `base` columns and of `more` columns."""
    columns = {**{name: BASE[name] for name in base}, **(more or {})}
    rows = [[column(line) for column in columns.values()] for line in table]
    return markdown_table([list(columns), *rows])


def with_interval(means: np.ndarray, digits: int = 3) -> str:
    """Format the mean over seeds (S,) and, of several seeds, its interval; no zero is negative."""
    estimate = Estimate(*(round(float(value), digits) + 0.0 for value in seed_estimate(means)))
    return format_estimate(estimate, digits)
