"""Learning curves: a CSV file with a row for each rollout, or for each so many timesteps."""

from __future__ import annotations

import csv
import io
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from stable_baselines3.common.callbacks import BaseCallback

from dialgym.io.files import write_text


def write_rows(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write a CSV file whose columns are those that any row has."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_text(path, text.getvalue())


class Curve(BaseCallback):
    """Writes a CSV row at the end of rollouts: `timesteps`, `seconds` and what it is about.

    Args:
        path: of the file.
        interval: timesteps; a row comes with the first rollout that reaches each multiple. 0 gives
            each rollout a row.
    """

    kept: ClassVar[list[str]] = ["rows", "before"]
    """Attributes that a run goes on with."""

    def __init__(self, path: Path, interval: int = 0) -> None:
        super().__init__()
        self.path, self.interval = path, interval
        self.rows: list[dict[str, Any]] = []
        self.before = 0  # timesteps at the end of the last rollout

    def _on_training_start(self) -> None:
        before = self.rows[-1]["seconds"] if self.rows else 0.0  # of the run that this one resumes
        self.started = time.monotonic() - before

    def _on_step(self) -> bool:
        return True

    def _on_rollout_end(self) -> None:
        now, interval = self.model.num_timesteps, self.interval
        due = not interval or now // interval > self.before // interval
        self.before = now
        values = self._values() if due else {}
        if values:
            seconds = round(time.monotonic() - self.started, 2)
            self.rows.append({"timesteps": now, "seconds": seconds, **values})
            write_rows(self.path, self.rows)

    def _values(self) -> dict[str, Any]:
        """The rest of a row; nothing leaves no row."""
        raise NotImplementedError


class LearningCurve(Curve):
    """`episodes, mean_return, success` of the episodes that ended since the last row.

    Without one there is no row; `success` is empty where the task has no `is_success`. Needs a
    `VecMonitor` (or `Monitor`) around the env.
    """

    kept: ClassVar[list[str]] = [*Curve.kept, "returns", "wins"]

    def __init__(self, path: Path, interval: int = 0) -> None:
        super().__init__(path, interval)
        self.returns: list[float] = []
        self.wins: list[bool] = []

    def _on_step(self) -> bool:
        for row in np.flatnonzero(self.locals["dones"]).tolist():
            info = self.locals["infos"][row]
            if "episode" in info:
                self.returns.append(float(info["episode"]["r"]))
            if "is_success" in info:
                self.wins.append(bool(info["is_success"]))
        return True

    def _values(self) -> dict[str, Any]:
        returns, wins = self.returns, self.wins
        self.returns, self.wins = [], []
        if not returns:
            return {}
        success = round(float(np.mean(wins)), 4) if wins else ""
        mean = round(float(np.mean(returns)), 4)
        return {"episodes": len(returns), "mean_return": mean, "success": success}


class LossCurve(Curve):
    """The losses and other figures of learning, means over an interval of the log."""

    def _values(self) -> dict[str, Any]:
        logged = self.logger.name_to_value.items()
        return {
            name.removeprefix("train/"): f"{value:.6g}"
            for name, value in logged
            if name.startswith("train/")
        }
