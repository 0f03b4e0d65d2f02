"""Memory of the dialogues that a learner of tokens has held, drawn whole."""

from __future__ import annotations

import numpy as np

from agents.storage.values import storable
from dialgym.datasets import TokenBatch

COLUMNS = ("tokens", "is_action", "reward", "truncated", "lengths")


@storable
class DialogueReplay:
    """The last dialogues of those that were added.

    Args:
        capacity: how many are kept.

    Attributes:
        columns: arrays (n, ...) of the fields `COLUMNS` of `TokenBatch`, oldest first.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.columns: dict[str, np.ndarray] = {}

    def __len__(self) -> int:
        return len(self.columns.get("lengths", ()))

    def add(self, batch: TokenBatch) -> None:
        """Keep dialogues, all in rows of the same length L."""
        new = {name: getattr(batch, name) for name in COLUMNS}
        if self.columns:
            new = {name: np.concatenate([self.columns[name], new[name]]) for name in COLUMNS}
        self.columns = {name: column[-self.capacity :] for name, column in new.items()}

    def draw(self, count: int, rng: np.random.Generator) -> TokenBatch:
        """`count` dialogues, any as likely as any other, with replacement; L as long as needed.

        Returns are not kept: `return_to_go` is 0.
        """
        rows = rng.integers(len(self), size=count)
        drawn = {name: column[rows] for name, column in self.columns.items()}
        width = int(drawn["lengths"].max())
        for name in ("tokens", "is_action", "reward"):
            drawn[name] = drawn[name][:, :width]
        return TokenBatch(
            **drawn,
            return_to_go=np.zeros_like(drawn["reward"]),
            terminated=~drawn["truncated"],
            rows=rows,
        )
