"""Scores of several training seeds as a table, with intervals over the seeds.

A column of a recipe is a name of `BASE`; or by its title a figure, ``[FIGURE, DIGITS]``, or a hook
``module:function`` that is called with the line. A figure that ends in `` %`` is shown in per cent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from dialgym.experiments.measures import BOUNDS as OF_MEASURES
from dialgym.experiments.statistics import (
    Estimate,
    Interval,
    format_estimate,
    iqm,
    seed_estimate,
)
from dialgym.experiments.tables import markdown_table
from dialgym.io.objects import load
from dialgym.registry import entry_of

if TYPE_CHECKING:
    from benchmarks.recipes.job import RecipeJob
    from benchmarks.recipes.recipe import Recipe

DIGITS = 3
PERCENT = " %"
RATES = ("success", "fresh", "precision", "recall", "f1", "found", "true")
BOUNDS = {**OF_MEASURES, "correlation": (-1.0, 1.0), **dict.fromkeys(RATES, (0.0, 1.0))}
"""The least and the greatest value of figures that have any."""


@dataclass(frozen=True)
class Line:
    """A method in an environment, over S training seeds of E episodes each.

    Attributes:
        method, env_id: what it is, and where.
        returns, solved: of each episode.
        jobs: of the seeds.
        metrics: by name what the task measures (`Task.metrics`), and the learner's `turns`.
        measured: by name what hooks measure of a model, and its success in other settings.
        hidden: it has no row.
    """

    method: str
    env_id: str
    returns: np.ndarray  # (S, E)
    solved: np.ndarray  # (S, E)
    jobs: tuple[RecipeJob, ...] = ()  # (S,)
    metrics: Mapping[str, np.ndarray] = field(default_factory=dict)  # (S, E) each
    measured: Mapping[str, np.ndarray] = field(default_factory=dict)  # (S,) each
    hidden: bool = False

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

    def figure(self, name: str) -> np.ndarray:
        """(S,) values of each seed; NaN where nothing was measured."""
        if name in ("return", "success"):
            return (self.returns if name == "return" else self.solved).mean(1)
        if name in self.measured:
            return self.measured[name]
        if name in self.metrics:
            return self.metrics[name].mean(1)
        return np.full(len(self.returns), np.nan)


def lines(jobs: Sequence[RecipeJob], results: Mapping[RecipeJob, Any]) -> list[Line]:
    """The scores of each method together, in their order."""
    groups: dict[str, list[RecipeJob]] = {}
    for job in jobs:
        groups.setdefault(job.method.name, []).append(job)
    return [_line(group, results) for group in groups.values()]


def _line(group: Sequence[RecipeJob], results: Mapping[RecipeJob, Any]) -> Line:
    """Of the jobs of one method; of metrics those that all seeds have."""
    own = tuple(job for job in group if not job.under)
    found = [results[job] for job in own]
    method = own[0].method
    measured = _together([one.get("measured", {}) for one in found])
    for under in method.also:
        of = [results[job]["measured"] for job in group if job.under == under]
        measured |= _together(of)
    return Line(
        method.name,
        method.environment,
        np.array([one.get("returns", []) for one in found]),
        np.array([one.get("solved", []) for one in found]),
        own,
        _together([one.get("metrics", {}) for one in found]),
        measured,
        method.hidden,
    )


def _together(values: Sequence[Mapping[str, Any]]) -> dict[str, np.ndarray]:
    names = [name for name in values[0] if all(name in one for one in values)]
    return {name: np.array([one[name] for one in values]) for name in names}


# Columns

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
    table: Sequence[Line], columns: Mapping[str, Any] | None = None, hidden: bool = False
) -> str:
    """A Markdown table of the columns, by default those of `BASE`; of hidden lines if asked for."""
    chosen = columns or dict.fromkeys(BASE)
    made = {title: _column(title, given) for title, given in chosen.items()}
    shown = [line for line in table if hidden or not line.hidden]
    rows = [[column(line) for column in made.values()] for line in shown]
    return markdown_table([list(made), *rows])


def _column(title: str, given: Any) -> Column:
    if given is None:
        return BASE[title]
    if isinstance(given, str) and ":" in given:
        return load(given)  # type: ignore[no-any-return]
    name, digits = _figure(given)
    scale, unit = (100, PERCENT) if name.endswith(PERCENT) else (1, "")

    def column(line: Line) -> str:
        values = scale * line.figure(name.removesuffix(PERCENT))
        if np.isnan(values).any():
            return ""
        if unit and isinstance(given, str):
            return f"{values.mean():.1f}{unit}"
        return f"{with_interval(values, digits, bounds_of(name))}{unit}"

    return column


def _figure(given: Any) -> tuple[str, int]:
    return (given, DIGITS) if isinstance(given, str) else (given[0], int(given[1]))


def report(recipe: Recipe, table: Sequence[Line]) -> str:
    """The table of a recipe, and what stands below it."""
    more = load(recipe.more)(table) + "\n" if recipe.more else ""
    if recipe.gain:
        more = f"{_gain(recipe, table)}\n"
    return f"{markdown(table, recipe.columns)}\n{more}{recipe.note}"


def _gain(recipe: Recipe, table: Sequence[Line]) -> str:
    """The sentence on the last row less the first, seed by seed."""
    figures = dict(_figure(given) for given in recipe.columns.values() if given is not None)
    first, *_, last = table
    added = {
        name: with_interval(last.figure(name) - first.figure(name), digits)
        for name, digits in figures.items()
    }
    return f"{recipe.gain}\n".format_map(added)


def bounds_of(name: str) -> Interval | None:
    """The least and the greatest value of a figure, where it is a rate or a correlation."""
    if name.endswith(PERCENT):
        return 0.0, 100.0
    return BOUNDS.get(name)


def with_interval(means: np.ndarray, digits: int = DIGITS, bounds: Interval | None = None) -> str:
    """Format the mean over seeds (S,) and, of several seeds, its interval; no zero is negative."""
    found = seed_estimate(means, bounds)
    estimate = Estimate(*(round(float(value), digits) + 0.0 for value in found))
    return format_estimate(estimate, digits)
