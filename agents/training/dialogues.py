"""Runs that are measured in dialogues: where learning ends, what schedules follow, models kept."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from stable_baselines3.common.callbacks import BaseCallback

from agents.storage.models import save
from agents.training.curves import write_rows

FILE = "dialogues.csv"
KEPT = "model_{}_dialogues.zip"
UNBOUNDED = 2**48
"""Timesteps of a run that ends with a dialogue."""


@dataclass(frozen=True)
class Budget:
    """How long a run learns, in dialogues.

    Attributes:
        count: dialogues to learn from.
        keep: after how many of them the model is kept, in `checkpoints/model_N_dialogues.zip`.

    Raises:
        ValueError: a number out of range.
    """

    count: int
    keep: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.count < 1:
            raise ValueError(f"dialogues: expected 1 or more, got {self.count}")
        wrong = [number for number in self.keep if not 1 <= number <= self.count]
        if wrong:
            raise ValueError(
                f"keep_dialogues: expected numbers from 1 to {self.count}, the dialogues of the "
                f"run, got {wrong[0]}"
            )


def budget(dialogues: int | None, keep: Sequence[int]) -> Budget | None:
    """The budget of a run; None where it is measured in timesteps.

    Raises:
        ValueError: a number is out of range, or models are to be kept of a run without dialogues.
    """
    if dialogues is None and keep:
        raise ValueError(f"keep_dialogues: expected dialogues too, got {list(keep)} alone")
    return None if dialogues is None else Budget(dialogues, tuple(sorted(keep)))


class Dialogues(BaseCallback):
    """Ends learning with the dialogue that completes the budget.

    Schedules (learning rate, exploration) fall over the dialogues, as PyDial's do, and not over
    timesteps. Several rows of an env may end a dialogue at one step: those beyond the budget are
    not counted. `dialogues.csv` has a row for each model that is kept: `dialogues, timesteps,
    cpu_seconds` of this process.
    """

    kept: ClassVar[list[str]] = ["ended", "rows", "cpu_seconds"]
    """Attributes that a run goes on with."""

    def __init__(self, budget: Budget, directory: Path) -> None:
        super().__init__()
        self.budget, self.directory = budget, directory
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
        self.ended = min(before + int(np.sum(self.locals["dones"])), self.budget.count)
        for number in self.budget.keep:
            if before < number <= self.ended:
                self._keep(number)
        return self.ended < self.budget.count

    def _on_training_end(self) -> None:
        del self.model._update_current_progress_remaining

    def _follow(self, num_timesteps: int, total_timesteps: int) -> None:
        self.model._current_progress_remaining = 1 - self.ended / self.budget.count

    def _keep(self, number: int) -> None:
        seconds = round(time.process_time() - self.started, 2)
        row = {"dialogues": number, "timesteps": self.num_timesteps, "cpu_seconds": seconds}
        self.rows = [*self.rows, row]
        save(self.model, self.directory / "checkpoints" / KEPT.format(number))
        write_rows(self.directory / FILE, self.rows)
