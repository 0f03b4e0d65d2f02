"""Sequences of different lengths read together, without padding but in attention.

Tokens stand one sequence after another; sequences of about the same length attend at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

RATIO, SMALLEST = 0.9, 512
"""In one attention no sequence is shorter than this share of the longest, unless it is small: of
fewer tokens, where a further call would cost more than padding."""


@dataclass(frozen=True)
class Rows:
    """Runs of packed items, side by side: between (n, ...) and rows (b, k, ...)."""

    total: int  # n, items packed
    shape: tuple[int, int]  # b, k
    spread: Tensor | None  # (b * k,) item of each place, padding a copy; None = all are k long
    inside: Tensor | None  # (n,) place of each item

    @classmethod
    def of(cls, counts: np.ndarray) -> Rows:
        """Rows of `counts` (b,) items, 1 or more."""
        longest, places = int(counts.max()), np.arange(counts.max())
        shape, total = (len(counts), longest), int(counts.sum())
        if total == len(counts) * longest:
            return cls(total, shape, None, None)
        starts = (counts.cumsum() - counts)[:, None]
        spread = (starts + np.minimum(places, counts[:, None] - 1)).ravel()
        inside = np.flatnonzero(places < counts[:, None])
        return cls(total, shape, torch.from_numpy(spread), torch.from_numpy(inside))

    def pad(self, packed: Tensor) -> Tensor:
        """(n, ...) to (b, k, ...)."""
        spread = packed if self.spread is None else packed.index_select(0, self.spread)
        return spread.unflatten(0, self.shape)

    def unpad(self, rows: Tensor) -> Tensor:
        """(b, k, ...) to (n, ...)."""
        flat = rows.flatten(0, 1)
        return flat if self.inside is None else flat.index_select(0, self.inside)


class Alike(NamedTuple):
    """Sequences of about the same length, and the places in them that are asked for."""

    tokens: Rows
    asked: Rows
    visible: Tensor  # (b, 1, places, tokens) bool, what a place that is asked for may look at


@dataclass(frozen=True)
class Packing:
    """Places of the tokens (B, T) of a batch when they are packed, as far as they are needed.

    What stands after the last place of a row that is asked for is left out.
    """

    tokens: Tensor  # (n,) flat places in (B * T)
    rows: Tensor  # (n,) their rows
    positions: Tensor  # (n,) and their positions there
    groups: list[Alike]
    asked: Tensor  # (N,) the packed tokens that are asked for, group by group
    back: Tensor | None  # (N,) to the order in which they were asked for; None = as it is

    @classmethod
    def of(cls, at: np.ndarray, width: int) -> Packing:
        """Of the flat places `at` (N,), 1 or more, in rows of `width` tokens."""
        row, place = np.divmod(at, width)
        used, row, counts = np.unique(row, return_inverse=True, return_counts=True)
        lengths = np.zeros(len(used), np.int64)
        np.maximum.at(lengths, row, place + 1)
        grouped = list(buckets(lengths, RATIO, SMALLEST))
        order = np.concatenate(grouped)  # longest first
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        sorted_at = np.lexsort((place, rank[row]))
        row, place = rank[row][sorted_at], place[sorted_at]
        lengths, counts, used = lengths[order], counts[order], used[order]
        starts = lengths.cumsum() - lengths
        owner = np.repeat(np.arange(len(used)), lengths)
        positions = np.arange(len(owner)) - starts[owner]
        bounds = np.cumsum([0, *map(len, grouped)])
        first = np.concatenate([[0], counts.cumsum()])
        groups = [
            _alike(lengths[i:j], counts[i:j], place[first[i] : first[j]])
            for i, j in pairwise(bounds)
        ]
        in_order = np.array_equal(sorted_at, np.arange(len(at)))
        return cls(
            torch.from_numpy(used[owner] * width + positions),
            torch.from_numpy(used[owner]),
            torch.from_numpy(positions),
            groups,
            torch.from_numpy(starts[row] + place),
            None if in_order else torch.from_numpy(np.argsort(sorted_at)),
        )


def _alike(lengths: np.ndarray, counts: np.ndarray, places: np.ndarray) -> Alike:
    tokens, asked = Rows.of(lengths), Rows.of(counts)
    until = asked.pad(torch.from_numpy(places))
    visible = torch.arange(tokens.shape[1]) <= until[..., None]
    return Alike(tokens, asked, visible[:, None])


def buckets(lengths: np.ndarray, ratio: float, smallest: int = 1) -> Iterator[np.ndarray]:
    """Split rows by length, so that padding to the longest of a bucket wastes little.

    Longest first; a bucket closes before a length below `ratio` times its longest, once it
    holds `smallest` tokens. Yields index arrays.
    """
    order = np.argsort(-lengths, kind="stable")
    start = 0
    for i in range(1, len(order)):
        longest = lengths[order[start]]
        if lengths[order[i]] < ratio * longest and (i - start) * longest >= smallest:
            yield order[start:i]
            start = i
    yield order[start:]
