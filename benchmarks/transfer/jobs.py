"""A row of the leaderboard in a setting that its model was not trained in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import dialgym
from agents.experiments.job import Job
from agents.experiments.training_job import plain
from benchmarks.transfer.axes import ENVIRONMENTS, Target, home_of, targets_of
from dialgym.experiments.panel import Panel
from dialgym.experiments.protocol import AT_ONCE
from dialgym.experiments.row import ExperimentRow, episode_columns, episode_means
from dialgym.versions import hardware

FORM = "dialgym transfer row 1"


@dataclass(frozen=True)
class TransferJob(Job):
    """A row's policy, played in one target in the way that it was trained.

    It plays the dialogues of the leaderboard's protocol: those of a seed are the same for all
    policies and targets, as far as their hidden parts go.

    Attributes:
        axis: the name of what is changed.
        panel: of the row.
        row: of the leaderboard, with its model beside it.
        target: what is played.
        episodes: dialogues.
        folder: as of `Job`.
    """

    axis: str
    panel: Panel
    row: ExperimentRow
    target: Target
    episodes: int
    folder: Path
    unit: ClassVar[str] = "dialogues"

    def __hash__(self) -> int:
        return hash(self.folder)

    def __str__(self) -> str:
        place = self.panel.environment(self.row.id).short
        return f"{self.row.name} of {place} seed {self.row.seed} at {self.target.name}"

    @property
    def kind(self) -> str:
        """The row and its environment."""
        return f"{self.row.name} {self.row.id}"

    @property
    def home(self) -> bool:
        """True where the target is the environment that the model was trained in."""
        return self.target.name == home_of(self.axis, self.panel.environment(self.row.id))

    def description(self) -> dict[str, Any]:
        """Plain values that determine the figures."""
        return plain(
            {
                "form": FORM,
                "axis": self.axis,
                "panel": self.panel.name,
                "version": self.panel.version,
                "name": self.row.name,
                "policy": self.row.values["policy"],
                "model": self.row.model_digits,
                "trained_in": self.row.id,
                "seed": self.row.seed,
                "way": self.row.actions,
                "target": self.target.name,
                "id": self.target.id,
                "env_kwargs": dict(self.target.settings),
                "first_episode": self.panel.evaluation.seed + self.row.seed,
                "episodes_played": self.episodes,
            }
        )

    def figures(self) -> dict[str, Any]:
        """Return, success and length of every episode."""
        result = dialgym.evaluate(
            self.row.find_policy(),
            self.target.id,
            self.episodes,
            [self.panel.evaluation.seed + self.row.seed],
            dict(self.target.settings),
            num_envs=AT_ONCE,
            deterministic=self.row.actions != "drawn",
        )
        episodes = episode_columns(result[self.target.id])
        return {
            "episodes": episodes,
            "statistics": episode_means(episodes),
            "source": result.stand_ins.get(self.target.id, "as named"),
            "hardware": hardware(),
        }

    def length(self) -> int:
        """Dialogues."""
        return self.episodes

    def summary(self, result: Mapping[str, Any]) -> str:
        """Return and success."""
        found = result["statistics"]
        return f"{found['return']:.2f}, {100 * found['success']:.1f} %"


def jobs_of(
    axis: str, panel: Panel, rows: Sequence[ExperimentRow], episodes: int, out: Path
) -> list[TransferJob]:
    """Make the jobs: every row in every target of its environment, seed by seed.

    Scripted policies are left out where environments are exchanged: they fit in all.

    Args:
        axis: what is changed.
        panel: of the rows.
        rows: of the leaderboard.
        episodes: dialogues in each target.
        out: the folder of all axes.

    Raises:
        ValueError: the axis has targets for none of them.
    """
    order = {place.id: i for i, place in enumerate(panel.environments)}
    found = []
    for row in sorted(rows, key=lambda row: (row.seed, order[row.id], row.name)):
        if row.actions == "scripted" and axis == ENVIRONMENTS:
            continue
        place = panel.environment(row.id)
        home = out.resolve() / axis / panel.name / row.name / f"{place.short}-seed{row.seed}"
        for target in targets_of(axis, panel, place):
            folder = home / target.name.replace(" %", "").replace("/", "-")
            found.append(TransferJob(axis, panel, row, target, episodes, folder))
    if not found:
        raise ValueError(
            f"{axis}: none of the {len(rows)} rows of the panel {panel.label} has other "
            "settings of this kind to be played in"
        )
    return found
