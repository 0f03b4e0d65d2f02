"""Splits of finite secrets, by which those that are scored are held out of training.

A secret belongs to a split by its name alone: not by its place in a list, nor by the list that it
stands in, so that a word that is held out of one environment is held out of all.
"""

from collections.abc import Iterator, Sequence
from zlib import crc32

import numpy as np

from dialgym.errors import one_of

SPLITS = ("train", "validation", "test")
_SHARES = (0,) * 7 + (1,) + (2,) * 2
"""The split of each last digit: 70 % train, 10 % validation, 20 % test."""


def split_of(name: str) -> str:
    """``train``, ``validation`` or ``test``: by the last digit of the CRC-32 of a secret's name."""
    return SPLITS[_SHARES[crc32(name.encode()) % 10]]


class Secrets:
    """Secrets of a list that dialogues are about: those of a split, or all.

    Attributes:
        split: ``train``, ``validation`` or ``test``; None for all.
        rows: (n,) int64, their places in the list, ascending.

    Args:
        names: of the secrets, one for each place.
        split: see above.
        task: whose secrets they are, for messages.
        what: they are, in the plural, for messages.

    Raises:
        ValueError: there is no such split, or none of the secrets is in it.
    """

    def __init__(self, names: Sequence[str], split: str | None, task: str, what: str) -> None:
        one_of("split", split, (*SPLITS, None), task)
        self.split = split
        known = [split is None or split_of(name) == split for name in names]
        self.rows = np.flatnonzero(known)
        if not len(self.rows):
            raise ValueError(
                f"split of {task}: expected {what} of the split {split!r}; got {len(names)} "
                f"{what}, of which none is. Give more {what}, or split=None."
            )
        self._places = frozenset(self.rows.tolist())

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[int]:
        return iter(self.rows.tolist())

    def __contains__(self, place: object) -> bool:
        return place in self._places

    def draw(self, rng: np.random.Generator) -> int:
        """The place of one of them, all equally likely; takes one whole number."""
        return int(self.rows[rng.integers(len(self.rows))])

    def __str__(self) -> str:
        """`` of the split 'test'``, to follow a noun; empty for all."""
        return "" if self.split is None else f" of the split {self.split!r}"
