"""Scores of several training seeds as a table, with intervals over the seeds.

A column of a recipe is a name of `BASE`; or by its title a figure, or ``[FIGURE, DIGITS]``, or
``[FIGURE, DIGITS, METHOD]`` for its difference to that of another method of the group, seed by
seed; as the method ``start`` is the one that a method goes on from. A figure that ends in `` %`` is
shown in per cent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from dialgym.experiments.measures import BOUNDS as OF_MEASURES
from dialgym.experiments.row import AS_NAMED
from dialgym.experiments.statistics import (
    Estimate,
    Interval,
    format_estimate,
    iqm,
    minimum_detectable_gap,
    seed_estimate,
)
from dialgym.experiments.tables import markdown_table
from dialgym.registry import entry_of

if TYPE_CHECKING:
    from benchmarks.recipes.job import RecipeJob
    from benchmarks.recipes.recipe import Recipe

DIGITS = 3
PERCENT = " %"
START = "start"
"""Stands for the method that a method goes on from."""
PREFIX = ": "
"""Ends the part of a method's name that a group of a recipe shares."""
RATES = ("success", "found", "percentile", "true", "pass^1", "pass^2", "pass^3", "pass^4")
BOUNDS = {
    **OF_MEASURES,
    **dict.fromkeys(("correlation", "rank"), (-1.0, 1.0)),
    **dict.fromkeys(RATES, (0.0, 1.0)),
    "tokens": (0.0, np.inf),
}
"""The least and the greatest value of figures that have any."""


@dataclass(frozen=True)
class Line:
    """A method in an environment, over S training seeds of E episodes each.

    Attributes:
        method, env_id: what it is, and where.
        returns, solved: of each episode.
        metrics: by name what the task measures (`Task.metrics`), and the learner's `turns`.
        measured: by name what hooks measure of a model.
        source: what stood in for the data that the settings name, or `AS_NAMED`.
        seeds: of the trainings, each once.
        start: the method that it goes on from.
    """

    method: str
    env_id: str
    returns: np.ndarray  # (S, E)
    solved: np.ndarray  # (S, E)
    metrics: Mapping[str, np.ndarray] = field(default_factory=dict)  # (S, E) each
    measured: Mapping[str, np.ndarray] = field(default_factory=dict)  # (S,) each
    source: str = AS_NAMED
    seeds: tuple[int, ...] = ()
    start: str | None = None

    @property
    def prefix(self) -> str:
        """The part of its name, up to `PREFIX`, that its group shares; "" without groups."""
        return "".join(self.method.rpartition(PREFIX)[:2])

    @property
    def label(self) -> str:
        """Name of the environment, with what stood in for its data."""
        return self.env_id if self.source == AS_NAMED else f"{self.env_id} ({self.source})"

    @property
    def means(self) -> np.ndarray:
        """(S,) mean return of each seed."""
        return self.returns.mean(1)

    @property
    def score(self) -> float:
        """100 (r - random) / (expert - random), with the registry's reference returns."""
        stand_in = None if self.source == AS_NAMED else self.source
        scores = entry_of(self.env_id).row.references(stand_in)
        return 100 * (self.means.mean() - scores["random"]) / (scores["expert"] - scores["random"])

    @property
    def detectable_gap(self) -> str:
        """Least difference of success, in points, that as many seeds show; "" for one seed."""
        if len(self.solved) < 2:
            return ""
        return f"{minimum_detectable_gap(100.0 * self.solved):.1f}"

    def gain(self, name: str, other: Line) -> np.ndarray:
        """(C,) differences of a figure to that of another line, of the C seeds that both have."""
        common = [seed for seed in self.seeds if seed in other.seeds]
        own, theirs = (
            line.figure(name)[[line.seeds.index(seed) for seed in common]] for line in (self, other)
        )
        return own - theirs

    def figure(self, name: str) -> np.ndarray:
        """(S,) values of each seed, of metrics over the dialogues that were measured, which are not
        -1 (`Task.metrics`); NaN where nothing was."""
        if name in ("return", "success"):
            return (self.returns if name == "return" else self.solved).mean(1)
        if name in self.measured:
            return self.measured[name]
        if name in self.metrics:
            measured = self.metrics[name] != -1
            counts = measured.sum(1)
            sums = np.where(measured, self.metrics[name], 0.0).sum(1)
            return np.divide(sums, counts, out=np.full(len(sums), np.nan), where=counts > 0)
        return np.full(len(self.returns), np.nan)


def lines(rows: Mapping[RecipeJob, Mapping[str, Any]]) -> list[Line]:
    """The rows of each method together, in their order."""
    groups: dict[str, list[RecipeJob]] = {}
    for job in rows:
        groups.setdefault(job.method.name, []).append(job)
    return [_line(group, [rows[job] for job in group]) for group in groups.values()]


def _line(jobs: Sequence[RecipeJob], rows: Sequence[Mapping[str, Any]]) -> Line:
    """Of the rows of one method; of metrics those that all seeds have."""
    method = jobs[0].method
    episodes = [row["episodes"] for row in rows]
    turns = {"turns": np.array([part["lengths"] for part in episodes])}
    return Line(
        method.name,
        method.environment,
        np.array([part["returns"] for part in episodes]),
        np.array([part["solved"] for part in episodes]),
        turns | _together([row["metrics"] for row in rows]),
        _together([row["measured"] for row in rows]),
        rows[0]["hashes"]["source"],
        tuple(job.seed for job in jobs),
        method.start,
    )


def _together(values: Sequence[Mapping[str, Any]]) -> dict[str, np.ndarray]:
    names = [name for name in values[0] if all(name in one for one in values)]
    return {name: np.array([one[name] for one in values]) for name in names}


# Columns

Column = Callable[[Line], str]

BASE: dict[str, Column] = {
    "environment": lambda line: line.label,
    "method": lambda line: line.method,
    "seeds": lambda line: str(len(line.returns)),
    "mean return": lambda line: with_interval(line.means),
    "IQM": lambda line: f"{iqm(line.returns):.3f}",
    "success": lambda line: f"{100 * line.solved.mean():.1f} %",
    "score": lambda line: f"{line.score:.1f}",
    "detectable gap": lambda line: line.detectable_gap,
}
"""The columns of every table that does not choose among them."""


def markdown(table: Sequence[Line], columns: Mapping[str, Any] | None = None) -> str:
    """A Markdown table of the columns, by default those of `BASE`."""
    chosen = columns or dict.fromkeys(name for name in BASE if name != "detectable gap")
    made = {title: _column(title, given, table) for title, given in chosen.items()}
    rows = [[column(line) for column in made.values()] for line in table]
    return markdown_table([list(made), *rows])


def _column(title: str, given: Any, table: Sequence[Line]) -> Column:
    if given is None:
        return BASE[title]
    parts = (given,) if isinstance(given, str) else tuple(given)
    name, digits, other = parts + ("", DIGITS, None)[len(parts) :]
    scale, unit = (100, PERCENT) if name.endswith(PERCENT) else (1, "")
    figure = name.removesuffix(PERCENT)

    def column(line: Line) -> str:
        values = line.figure(figure) if other is None else _gain(line, figure, other, table)
        if not len(values) or np.isnan(values).any():
            return ""
        if unit and isinstance(given, str):
            return f"{scale * values.mean():.1f}{unit}"
        bounds = bounds_of(name) if other is None else None
        return f"{with_interval(scale * values, digits, bounds)}{unit}"

    return column


def _gain(line: Line, figure: str, other: str, table: Sequence[Line]) -> np.ndarray:
    """Differences to the method `other` of its group; none to itself, or where it has no rows."""
    name = line.start if other == START else line.prefix + other
    return next(
        (line.gain(figure, one) for one in table if one.method == name and one is not line),
        np.empty(0),
    )


def report(recipe: Recipe, table: Sequence[Line]) -> str:
    """The table of a recipe, and what stands below it."""
    return f"{markdown(table, recipe.columns)}\n{recipe.note}"


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
