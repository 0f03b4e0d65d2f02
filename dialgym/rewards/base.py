"""What several tasks share of their rewards."""

from dataclasses import dataclass

Components = dict[str, float]
"""Reward components of one utterance, by name; their sum is the reward."""


@dataclass(frozen=True)
class Cost:
    """A fixed reward of `-amount` for whatever it is charged for, logged as `name`."""

    name: str
    amount: float = 1.0

    def charge(self) -> Components:
        """The component to be added to an utterance's reward."""
        return {self.name: -self.amount}
