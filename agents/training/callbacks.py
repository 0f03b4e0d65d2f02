"""What training does beside learning: its curve, and events at set timesteps."""

from __future__ import annotations

import csv
import io
import time
from pathlib import Path
from typing import Any

import numpy as np
from stable_baselines3.common.callbacks import BaseCallback, EventCallback

from dialgym.files import write_text

COLUMNS = ("timesteps", "seconds", "episodes", "mean_return", "success")


class LearningCurve(BaseCallback):
    """Writes a CSV row at the end of each rollout.

    `timesteps, seconds, episodes, mean_return, success`: the last three over the episodes that
    ended in that rollout. A rollout without one leaves no row; `success` is empty where the
    task has no `is_success`. Needs a `VecMonitor` (or `Monitor`) around the env.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self.rows: list[tuple[Any, ...]] = []
        self.ended: list[dict[str, Any]] = []

    def _on_training_start(self) -> None:
        before = self.rows[-1][1] if self.rows else 0.0  # of the run that this one resumes
        self.started = time.monotonic() - before

    def _on_step(self) -> bool:
        dones = np.flatnonzero(self.locals["dones"])
        self.ended += [self.locals["infos"][row] for row in dones]
        return True

    def _on_rollout_end(self) -> None:
        returns = [info["episode"]["r"] for info in self.ended if "episode" in info]
        wins = [info["is_success"] for info in self.ended if "is_success" in info]
        self.ended = []
        if not returns:
            return
        seconds = round(time.monotonic() - self.started, 2)
        success = round(float(np.mean(wins)), 4) if wins else ""
        mean = round(float(np.mean(returns)), 4)
        self.rows.append((self.num_timesteps, seconds, len(returns), mean, success))
        self._write()

    def _write(self) -> None:
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerows([COLUMNS, *self.rows])
        write_text(self.path, text.getvalue())


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
