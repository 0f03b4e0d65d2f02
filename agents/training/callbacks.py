"""What training does beside learning: its curve, and events at set timesteps."""

from __future__ import annotations

import csv
import io
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from stable_baselines3.common.callbacks import BaseCallback, EventCallback, ProgressBarCallback

from agents.offline.algorithm import StepsBar
from dialgym.files import write_text


class Curve(BaseCallback):
    """Writes a CSV row at the end of each rollout: `timesteps`, `seconds` and what it is about."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self.rows: list[dict[str, Any]] = []

    def _on_training_start(self) -> None:
        before = self.rows[-1]["seconds"] if self.rows else 0.0  # of the run that this one resumes
        self.started = time.monotonic() - before

    def _on_step(self) -> bool:
        return True

    def _on_rollout_end(self) -> None:
        values = self._values()
        if values:
            seconds = round(time.monotonic() - self.started, 2)
            self.rows.append({"timesteps": self.model.num_timesteps, "seconds": seconds, **values})
            self._write()

    def _values(self) -> dict[str, Any]:
        """The rest of a rollout's row; nothing leaves no row."""
        raise NotImplementedError

    def _write(self) -> None:
        columns = list(dict.fromkeys(name for row in self.rows for name in row))
        text = io.StringIO()
        writer = csv.DictWriter(text, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.rows)
        write_text(self.path, text.getvalue())


class LearningCurve(Curve):
    """`episodes, mean_return, success` of the episodes that ended in a rollout.

    A rollout without one leaves no row; `success` is empty where the task has no `is_success`.
    Needs a `VecMonitor` (or `Monitor`) around the env.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.ended: list[dict[str, Any]] = []

    def _on_step(self) -> bool:
        dones = np.flatnonzero(self.locals["dones"])
        self.ended += [self.locals["infos"][row] for row in dones]
        return True

    def _values(self) -> dict[str, Any]:
        returns = [info["episode"]["r"] for info in self.ended if "episode" in info]
        wins = [info["is_success"] for info in self.ended if "is_success" in info]
        self.ended = []
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


class AtMultiples(EventCallback):
    """Calls `callback` at the first step that reaches each multiple of `freq` timesteps.

    A step is as many timesteps as there are dialogues. Counting calls, as callbacks of
    Stable-Baselines3 do, drifts where that does not divide `freq`, and begins again in a run that
    is resumed; here the time depends on the timesteps alone.
    """

    def __init__(self, freq: int, callback: BaseCallback) -> None:
        super().__init__(callback)
        self.freq = freq

    def _init_callback(self) -> None:
        super()._init_callback()
        self.before = self.model.num_timesteps

    def _on_step(self) -> bool:
        reached = self.num_timesteps // self.freq > self.before // self.freq
        self.before = self.num_timesteps
        return self._on_event() if reached else True


@contextmanager
def progress(plays: bool) -> Iterator[BaseCallback]:
    """The progress bar of an algorithm that plays, or of one that does not.

    It is closed in any case: left open by an error, it would keep the process from ending.
    """
    bar = ProgressBarCallback() if plays else StepsBar()
    try:
        yield bar
    finally:
        if hasattr(bar, "pbar"):
            bar.pbar.close()
