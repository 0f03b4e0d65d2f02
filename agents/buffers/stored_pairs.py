"""Stored dialogues in pairs, a better and a worse one: drawn anew in each epoch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from agents.buffers.stored_returns import dialogue_returns
from dialgym.datasets import Dataset

STARTS = ("seed", "options", "settings")
"""Columns of stored dialogues that decide how one begins, hidden things included."""
LEAST_MARGIN = 1e-6
"""Returns that differ by less are equal but for rounding."""


class StoredPairs:
    """Dialogues and for each another one, with another return, to be compared with.

    Pair i + k N is the i-th of the N dialogues that have a partner, and of these the one that is
    drawn in epoch k; the draws follow from the seed.

    Args:
        data: `TokenData` or `StoredActs`.
        margin: least difference of the returns of a pair, which are those of what the learner
            chose, undiscounted.
        starts: (N,) labels of how dialogues begin, for pairs of the same one; None for any two.
        seed: of the draws.

    Raises:
        ValueError: there is no pair.
    """

    endless = True

    def __init__(self, data: Any, margin: float, starts: np.ndarray | None, seed: int) -> None:
        self.data, self.seed = data, seed
        returns, spoke = dialogue_returns(data)
        rows = np.flatnonzero(spoke)
        labels = np.zeros(len(rows), np.int64) if starts is None else starts[rows]
        self._order = rows[np.lexsort((returns[rows], labels))]
        sizes = np.unique(labels, return_counts=True)[1]
        first = sizes.cumsum() - sizes
        self._first, self._last = np.repeat(first, sizes), np.repeat(first + sizes, sizes)
        self._worse, self._better = _partners(returns[self._order], sizes, margin)
        self._chosen = np.flatnonzero(self._worse + self._better)
        if not len(self._chosen):
            alike = "" if starts is None else " of the same start"
            raise ValueError(
                f"dataset: expected pairs of dialogues{alike} whose returns differ by more than "
                f"{margin:g}, got none among {len(rows)} dialogues with {len(sizes)} starts; give "
                "a smaller margin, more dialogues of each seed, or pairs='any'"
            )

    def __len__(self) -> int:
        return len(self._chosen)

    def batch(
        self, rows: Sequence[int] | np.ndarray, gamma: float = 1.0, trim: bool = False
    ) -> Any:
        """The dialogues of the pairs `rows` (b,), one pair after the other: 2 b of them.

        The other arguments are those of `TokenData.batch`.
        """
        return self.data.batch(self.pairs(np.asarray(rows, np.int64)).reshape(-1), gamma, trim)

    def pairs(self, rows: np.ndarray) -> np.ndarray:
        """(b, 2): numbers of the dialogues of the pairs `rows` (b,), the worse one first."""
        epochs, numbers = np.divmod(rows, len(self))
        draws = np.empty(len(rows))
        for epoch in np.unique(epochs):
            found = np.random.default_rng([self.seed, int(epoch)]).random(len(self))
            draws[epochs == epoch] = found[numbers[epochs == epoch]]
        at = self._chosen[numbers]
        worse, better = self._worse[at], self._better[at]
        drawn = (draws * (worse + better)).astype(np.int64)
        is_worse = drawn < worse
        other = np.where(is_worse, self._first[at] + drawn, self._last[at] - 1 - (drawn - worse))
        pairs = np.where(is_worse, [other, at], [at, other])  # (2, b), in order of returns
        found_pairs: np.ndarray = self._order[pairs.T]
        return found_pairs


def _partners(returns: np.ndarray, sizes: np.ndarray, margin: float) -> tuple[np.ndarray, ...]:
    """Numbers (n,) of dialogues of the same group that are worse, and better, by the margin.

    Args:
        returns: (n,), group by group, each in order.
        sizes: of the groups.
        margin: least difference.
    """
    gap = max(margin - LEAST_MARGIN, LEAST_MARGIN)
    worse, better = np.zeros(len(returns), np.int64), np.zeros(len(returns), np.int64)
    for start, size in zip(sizes.cumsum() - sizes, sizes, strict=True):
        group = slice(start, start + size)
        of_it = returns[group]
        worse[group] = np.searchsorted(of_it, of_it - gap, "right")
        better[group] = size - np.searchsorted(of_it, of_it + gap, "left")
    return worse, better


def starts_of(dataset: Any) -> np.ndarray:
    """(N,) int64 labels of how the dialogues of a `Dataset` begin, hidden things included.

    Raises:
        ValueError: it is another form of dialogues, which does not say.
    """
    if not isinstance(dataset, Dataset):
        raise ValueError(
            "dataset: expected a dialgym Dataset, which says how dialogues begin, got "
            f"{type(dataset).__name__}; give that, or pairs='any'"
        )
    keys = list(zip(*(dataset[name].tolist() for name in STARTS), strict=True))
    numbers = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    return np.array([numbers[key] for key in keys], np.int64)
