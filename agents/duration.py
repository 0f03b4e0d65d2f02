"""A warning of how long learning is going to take, after its first updates."""

from __future__ import annotations

import time
import warnings
from typing import Any, ClassVar

from stable_baselines3.common.callbacks import BaseCallback

from dialgym.progress import spell_seconds


class LongTrainingWarning(UserWarning):
    """Learning is going to take longer than `DurationWarning.longest`."""


class DurationWarning(BaseCallback):
    """Warns once where learning is going to take long, which it measures by its first updates.

    An update is a gradient step where `steps_are_updates`, else a rollout and what is learned from
    it. The first one, in which much is made for all, does not count; what is left is estimated
    after `fewest` further ones, and again whenever as many more have passed as before.

    Attributes:
        longest: seconds that may be left without a warning.
        fewest: updates by which the time is measured.
        least: seconds that these take together.
    """

    longest: ClassVar[float] = 1800.0
    fewest: ClassVar[int] = 3
    least: ClassVar[float] = 1.0

    @staticmethod
    def clock() -> float:
        """The time in seconds."""
        return time.monotonic()

    def _init_callback(self) -> None:
        self.updates = 0
        self.due, self.told = 1, False
        self._mark = (0, 0.0, 1.0)  # updates, time and what was left, as a share of all

    def _on_step(self) -> bool:
        if getattr(self.model, "steps_are_updates", False):
            self._count()
        return True

    def _on_rollout_start(self) -> None:
        if not getattr(self.model, "steps_are_updates", False):
            self._count()

    def _count(self) -> None:
        self.updates += 1
        if self.told or self.updates < self.due:
            return
        now, left = self.clock(), float(self.model._current_progress_remaining)
        before, then, left_then = self._mark
        count, seconds = self.updates - before, now - then
        if not before:
            self._mark, self.due = (self.updates, now, left), self.updates + self.fewest
        elif seconds >= self.least:
            self._mark, self.due = (self.updates, now, left), 2 * self.updates
            if left < left_then:
                self._look(seconds / count, count * left / (left_then - left))

    def _look(self, seconds: float, updates: float) -> None:
        """Warn if so many updates of so many seconds each take long."""
        model: Any = self.model
        processes = getattr(model, "processes", None)
        if seconds * updates <= self.longest or not (processes is None or processes.is_first):
            return
        self.told = True
        if getattr(model, "steps_are_updates", False):
            unit, batch = "gradient steps", f"a smaller batch_size (it is {model.batch_size})"
            advice = f"{batch}, shorter dialogues or fewer steps"
        else:
            unit, advice = "rollouts", "fewer timesteps, or a smaller network (policy_kwargs)"
        warnings.warn(
            f"{type(model).__name__}: {round(updates):,} {unit} of about {spell_seconds(seconds)} "
            f"are left, about {spell_seconds(seconds * updates)}. Less time: {advice}.",
            LongTrainingWarning,
            stacklevel=2,
        )
