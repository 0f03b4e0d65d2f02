"""Callbacks of a training run: learning curves, a limit in dialogues, kept models."""

from __future__ import annotations

import csv
import io
import math
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from stable_baselines3.common.callbacks import BaseCallback, EventCallback

from agents.storage.models import save
from dialgym.io.files import write_text

DIALOGUES_FILE = "dialogues.csv"
KEPT_MODEL = "model_{}_dialogues.zip"
HELD_OUT = "held_out/"
"""Prefix of what is measured on dialogues that are not learned from."""


def write_rows(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows to a CSV file; its columns are all keys of the rows."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_text(path, text.getvalue())


class Curve(BaseCallback):
    """Writes a CSV row at the end of rollouts: `timesteps`, `seconds` and its own columns.

    Args:
        path: of the file.
        interval: timesteps; a row comes with the first rollout that reaches each multiple. 0 gives
            each rollout a row.
    """

    state_names: ClassVar[list[str]] = ["rows", "before"]
    """Attributes that a run goes on with."""

    def __init__(self, path: Path, interval: int = 0) -> None:
        super().__init__()
        self.path, self.interval = path, interval
        self.rows: list[dict[str, Any]] = []
        self.before = 0  # timesteps at the end of the last rollout
        self.started = time.monotonic()

    @property
    def seconds(self) -> float:
        """Seconds of learning; of a run that was resumed those until its last row among them."""
        return time.monotonic() - self.started

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
            self.rows.append({"timesteps": now, "seconds": round(self.seconds, 2), **values})
            write_rows(self.path, self.rows)

    def _values(self) -> dict[str, Any]:
        """The rest of a row; nothing leaves no row."""
        raise NotImplementedError


class LearningCurve(Curve):
    """`episodes, mean_return, success` of the episodes that ended since the last row.

    Without one there is no row; `success` is empty where the task has no `is_success`. Needs a
    `VecMonitor` (or `Monitor`) around the env.
    """

    state_names: ClassVar[list[str]] = [*Curve.state_names, "returns", "wins"]

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
    """The losses and other figures of learning, means over an interval of the log; held-out ones.

    The latter keep their name, such as `held_out/loss`.
    """

    def _values(self) -> dict[str, Any]:
        logged = self.logger.name_to_value.items()
        return {
            name.removeprefix("train/"): f"{value:.6g}"
            for name, value in logged
            if name.startswith(("train/", HELD_OUT))
        }


class HeldOutLoss(BaseCallback):
    """Logs the losses of dialogues that are not learned from, at the end of each interval.

    Each of several processes measures all of them.

    Args:
        dataset: the dialogues.
        best: called where their loss is the least so far; None for nobody.
    """

    state_names: ClassVar[list[str]] = ["least"]
    """Attributes that a run goes on with."""

    def __init__(self, dataset: Any, best: BaseCallback | None = None) -> None:
        super().__init__()
        self.dataset, self.best = dataset, best
        self.least = math.inf

    def _init_callback(self) -> None:
        self.data = self.model.stored(self.dataset)  # type: ignore[attr-defined]
        if self.best is not None:
            self.best.init_callback(self.model)

    def _on_step(self) -> bool:
        return True

    def _on_rollout_end(self) -> None:
        model: Any = self.model
        found = model.mean_losses(self.data)
        for name, value in found.items():
            self.logger.record(f"{HELD_OUT}{name}", value)
        if self.best is not None and found["loss"] < self.least and not model.cloning:
            self.least = found["loss"]
            self.best.on_step()


class StopAfterDialogues(BaseCallback):
    """Ends learning with the dialogue that completes the count.

    Schedules (learning rate, exploration) fall over the dialogues, as PyDial's do, and not over
    timesteps. Several rows of an env may end a dialogue at one step: those beyond the count are
    not counted. `dialogues.csv` has a row for each model that is kept: `dialogues, timesteps,
    cpu_seconds` of this process.

    Args:
        count: dialogues to learn from.
        folder: of the run.
        keep: after how many of them the model is kept, in `checkpoints/model_N_dialogues.zip`.
    """

    state_names: ClassVar[list[str]] = ["ended", "rows", "cpu_seconds"]
    """Attributes that a run goes on with."""

    def __init__(self, count: int, folder: Path, keep: Sequence[int] = ()) -> None:
        super().__init__()
        self.count, self.folder, self.keep = count, folder, keep
        self.ended = 0
        self.cpu_seconds = 0.0  # until the last rollout began
        self.rows: list[dict[str, Any]] = []

    def _on_training_start(self) -> None:
        self.started = time.process_time() - self.cpu_seconds
        # The models' own would count timesteps; `agents.save` leaves it out.
        self.model._update_current_progress_remaining = self._follow  # type: ignore[method-assign]

    def _on_rollout_start(self) -> None:
        self.cpu_seconds = time.process_time() - self.started

    def _on_step(self) -> bool:
        before = self.ended
        self.ended = min(before + int(np.sum(self.locals["dones"])), self.count)
        for number in self.keep:
            if before < number <= self.ended:
                self._keep(number)
        return self.ended < self.count

    def _on_training_end(self) -> None:
        del self.model._update_current_progress_remaining

    def _follow(self, num_timesteps: int, total_timesteps: int) -> None:
        self.model._current_progress_remaining = 1 - self.ended / self.count

    def _keep(self, number: int) -> None:
        seconds = round(time.process_time() - self.started, 2)
        row = {"dialogues": number, "timesteps": self.num_timesteps, "cpu_seconds": seconds}
        self.rows = [*self.rows, row]
        save(self.model, self.folder / "checkpoints" / KEPT_MODEL.format(number))
        write_rows(self.folder / DIALOGUES_FILE, self.rows)


class KeepModel(BaseCallback):
    """Saves the model when it is called; `{}` in the file's name is the number of timesteps."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path

    def _on_step(self) -> bool:
        save(self.model, self.path.with_name(self.path.name.format(self.num_timesteps)))
        return True


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
