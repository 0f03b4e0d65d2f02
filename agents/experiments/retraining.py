"""Retraining of a leaderboard row, and the interval in which its figure is expected."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from agents.experiments.panel_jobs import jobs_of
from agents.experiments.run import run_jobs
from dialgym.experiments.panel import panel_named
from dialgym.experiments.ranking import BOUNDS
from dialgym.experiments.row import RETURN, ExperimentRow
from dialgym.experiments.row_files import read_row
from dialgym.experiments.statistics import Estimate, format_estimate, one_more_run


class Retrained(NamedTuple):
    """A row that was trained again.

    Attributes:
        figure: mean of the metric over the episodes, played as it was trained.
        expected: that of the file, in the 95 % interval of one more training.
        metric: its name; the return where the row has no score.
        is_same_model: the weights are those of the row, bit for bit.
    """

    figure: float
    expected: Estimate
    metric: str
    is_same_model: bool

    @property
    def is_within(self) -> bool:
        """Return True for the same weights, or a figure within the interval."""
        _, low, high = self.expected
        return self.is_same_model or (self.expected.is_bounded and low <= self.figure <= high)

    def __str__(self) -> str:
        expected = format_estimate(self.expected, 2)
        figures = f"{self.metric} {self.figure:.2f}, in the file {expected}"
        return f"the same weights, {figures}" if self.is_same_model else figures


def retrain_row(row: ExperimentRow, out: Path) -> Retrained:
    """Train what a row is of by the panel's settings, with its seed, and score it.

    The interval is that of one more training, by the rows of other seeds in the file's folder; of a
    single row, by its episodes. On the kind of processor that the row names the weights are the
    same; elsewhere floating point makes another training of it.

    Args:
        row: of a learner of the panel.
        out: the folder of the runs, which go on from there.

    Raises:
        ValueError: nothing was trained for the row, or not by settings that the panel has.
        RuntimeError: the training failed.
    """
    if row.values["kind"] != "trained":
        raise ValueError(
            f"--retrain: expected a row of a learner, got one of kind {row.values['kind']!r}; "
            "--replay plays it again"
        )
    panel = panel_named(row.values["panel"])
    (job,) = jobs_of(panel, [row.name], [panel.environment(row.id)], [row.seed], out)
    here, there = job.description()["settings"], row.values["settings"]
    others = [name for name in {**here, **there} if here.get(name) != there.get(name)]
    if others:
        raise ValueError(
            f"settings: the panel's are others than the row's ({', '.join(sorted(others))}); "
            f"train by those of commit {row.values['versions'].get('commit')}"
        )
    _, failures = run_jobs([job], 0)
    for reason in failures.values():
        raise RuntimeError(f"the training failed: {reason}")
    again = read_row(job.result)
    metric = RETURN if row.column(panel.metric) is None else panel.metric
    played, own = (float(_figures([one], metric).mean()) for one in (again, row))
    expected = one_more_run(_figures(_siblings(row), metric), BOUNDS.get(metric))
    same = again.model_digits == row.model_digits
    return Retrained(played, expected._replace(value=own), metric, same)


def _siblings(row: ExperimentRow) -> list[ExperimentRow]:
    """The row and those of other seeds beside it."""
    stem = row.file.stem.rpartition("-seed")[0]
    return [read_row(file) for file in sorted(row.file.parent.glob(f"{stem}-seed*.json"))]


def _figures(rows: Sequence[ExperimentRow], metric: str) -> np.ndarray:
    """(K, E) the metric in each episode, played as it was trained."""
    return np.array([row.column(metric) for row in rows], float)
