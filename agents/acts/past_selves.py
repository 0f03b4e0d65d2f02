"""Earlier policies of both parties, which learners of self-play meet again in some dialogues."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import NamedTuple

import numpy as np
from torch import nn

from agents.policies.belief import BeliefPolicy
from dialgym.errors import share, whole_number

PAST = "past of MADPL"
Cast = list[tuple[int, int] | None]
"""By dialogue the party that is an earlier one and its place among those kept, or None."""


class PastOptions(NamedTuple):
    """Options of how earlier selves take part in self-play.

    Attributes:
        share: of the dialogues in which one party is an earlier one; each as often as the other.
        kept: how many earlier selves of each party there are.
        every: rollouts from one that is kept to the next, which takes the place of the oldest; 0
            keeps those that learning began with.
    """

    share: float = 0.0
    kept: int = 1
    every: int = 0

    def checked(self) -> PastOptions:
        """Itself; a ValueError where a number cannot be."""
        whole_number("kept", self.kept, PAST)
        whole_number("every", self.every, PAST, 0)
        share(f"share of {PAST}", self.share)
        return self


class PastSelves(nn.Module):
    """Earlier policies of both parties; they do not learn.

    Args:
        policies: of both parties, as they are made.
        options: see `PastOptions`.
    """

    def __init__(self, policies: Sequence[BeliefPolicy], options: PastOptions) -> None:
        super().__init__()
        self.options = options
        count = options.kept if options.share else 0
        self.kept = nn.ModuleList(
            nn.ModuleList(deepcopy(policy).requires_grad_(False) for policy in policies)
            for _ in range(count)
        )

    def note(self, rollout: int, policies: Sequence[BeliefPolicy]) -> None:
        """Keep policies as they are before a rollout of that number, where they are to be kept."""
        every, slots = self.options.every, [list(pair) for pair in self.kept]  # type: ignore[call-overload]
        if rollout and slots:
            due = every and rollout % every == 0
            slots = [slots[rollout // every % len(slots)]] if due else []
        for slot in slots:
            for kept, policy in zip(slot, policies):
                kept.load_state_dict(policy.state_dict())

    def policy(self, place: int, party: int) -> BeliefPolicy:
        """The earlier policy of a party, at a place among those that are kept."""
        return self.kept[place][party]  # type: ignore[index, return-value]

    def cast(self, count: int, rng: np.random.Generator) -> Cast:
        """For each of `count` dialogues who of the two is an earlier one, and which; or None."""
        met = min(round(self.options.share * count), count - 1)  # both learn in one at least
        places = rng.integers(len(self.kept), size=met).tolist() if met else []
        return [(row % 2, place) for row, place in enumerate(places)] + [None] * (count - met)
