"""Rewards held against what a task declares of them; see `dialgym.debug`."""

from collections.abc import Mapping

import numpy as np

from dialgym.debug import BrokenPromise, enforcing
from dialgym.tasks.base import Task

_ONLY = np.zeros(1, np.int64)
SLACK = 1e-6
"""By how much sums may differ, beside 1 or their size."""


def rounding_of(bounds: tuple[float, float]) -> float:
    """By how much a sum of rewards may lie outside its `bounds`."""
    return SLACK * max(1.0, *map(abs, bounds))


class ReturnWatch:
    """Adds up the rewards of a party in n dialogues, and holds them to `Facts`.

    Each reward is finite and the sum of its components, which `Facts.components` names; where a
    dialogue ends by its rules its return is within `Facts.returns`.

    Args:
        task: the rules.
        party: whose rewards they are.
        size: n.
    """

    def __init__(self, task: Task, party: str, size: int = 1) -> None:
        self.name, self.party = task.name, party
        self.names = set(task.facts.components.get(party, ()))
        self.bounds = task.facts.returns[party]
        self.total = np.zeros(size)

    def begin(self, rows: np.ndarray) -> None:
        """Dialogues begin again."""
        self.total[rows] = 0.0

    def unset(self, rows: np.ndarray) -> None:
        """Dialogues go on from where they were saved: what they have gained is not known."""
        self.total[rows] = np.nan

    def note(
        self,
        rows: np.ndarray,
        rewards: np.ndarray,
        components: Mapping[str, np.ndarray],
        over: np.ndarray,
    ) -> None:
        """Take in the rewards (k,) of some dialogues, their components (k,), and which are over.

        Raises:
            BrokenPromise: a bound is broken.
        """
        if not np.isfinite(rewards).all():
            raise self._broken(f"the rewards {rewards.tolist()}; expected finite numbers")
        if components:
            self._add_up(rewards, components)
        self.total[rows] += rewards
        gained, (low, high) = self.total[rows][over], self.bounds
        slack = rounding_of(self.bounds)
        beyond = (gained < low - slack) | (gained > high + slack)
        for value in gained[beyond].tolist():
            raise self._broken(f"a return of {value:g}; facts.returns allows {low:g} to {high:g}")

    def note_one(self, reward: float, components: Mapping[str, float], over: bool) -> None:
        """The same of the only dialogue."""
        parts = {name: np.array([value]) for name, value in components.items()}
        self.note(_ONLY, np.array([reward], np.float64), parts, np.array([over]))

    def _add_up(self, rewards: np.ndarray, components: Mapping[str, np.ndarray]) -> None:
        extra = set(components) - self.names
        if extra:
            raise self._broken(
                f"the components {sorted(extra)}; facts.components allows {sorted(self.names)}"
            )
        total = np.sum([np.asarray(part, np.float64) for part in components.values()], 0)
        if not np.allclose(total, rewards, rtol=SLACK, atol=SLACK):
            raise self._broken(
                f"the rewards {rewards.tolist()}, whose components add up to {total.tolist()}"
            )

    def _broken(self, what: str) -> BrokenPromise:
        return BrokenPromise(
            f"{self.name}: the {self.party} was given {what}. Mend the rewards, or what is "
            "declared of them."
        )


def watch_returns(task: Task, party: str, size: int = 1) -> ReturnWatch | None:
    """A watch where declared bounds are enforced, else None."""
    return ReturnWatch(task, party, size) if enforcing() else None
