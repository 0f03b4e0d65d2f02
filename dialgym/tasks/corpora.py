"""Corpora of tasks: split by name, and cached as arrays."""

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np

from dialgym.errors import unknown
from dialgym.io.cache import cached_arrays
from dialgym.io.tables import fingerprint

BUILT_IN = "built-in"
"""The source of data that is part of the package, and stands in for a corpus."""
Corpus = TypeVar("Corpus")


class InSplit(Protocol):
    """Something read from the data, and the split that it belongs to."""

    @property
    def split(self) -> str: ...


Item = TypeVar("Item", bound=InSplit)


class Consecutive:
    """Dialogues whose utterances lie one after another.

    Attributes:
        offsets: (N+1,) int64; dialogue i is the utterances from ``offsets[i]`` to
            ``offsets[i+1]``.
    """

    offsets: np.ndarray

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @cached_property
    def starts(self) -> list[int]:
        """`offsets` as plain numbers."""
        found: list[int] = self.offsets.tolist()
        return found


def cached(
    name: str, place: Path, read: Callable[[], Mapping[str, np.ndarray]]
) -> Mapping[str, np.ndarray]:
    """The arrays that `read` makes of the data, cached for as long as the data is the same."""
    return cached_arrays(f"{name}-{fingerprint(place)}", read)


def to_bytes(lines: Iterable[str]) -> np.ndarray:
    """Texts as bytes (n,) uint8; no text has a line break in it, see `plain`."""
    return np.frombuffer("".join([f"{line}\n" for line in lines]).encode(), np.uint8)


def from_bytes(content: np.ndarray) -> list[str]:
    """The texts that `to_bytes` was given."""
    return content.tobytes().decode().split("\n")[:-1]


def split_of(splits: Mapping[str, Corpus], name: str, data: Any, what: str) -> Corpus:
    """The split of that name; `data` None is the built-in data.

    Raises:
        ValueError: the data has none.
    """
    if not isinstance(name, str) or name not in splits:
        raise unknown("split", name, splits, f"the {what}" if data is None else str(data))
    return splits[name]


def by_split(items: Iterable[Item], where: str, what: str) -> dict[str, list[Item]]:
    """The items by the split of each.

    Raises:
        ValueError: there are none.
    """
    splits: dict[str, list[Item]] = {}
    for item in items:
        splits.setdefault(item.split, []).append(item)
    if not splits:
        raise ValueError(f"data {where!r} has no {what}. Give data that has at least one.")
    return splits


def training_split(splits: Mapping[str, Corpus], data: Any, learner: str) -> Corpus:
    """The split that `learner` may learn from; never another.

    Raises:
        ValueError: the data has none.
    """
    if "train" in splits:
        return splits["train"]
    raise ValueError(
        f"{learner} learns from the split 'train'; the data {str(data)!r} has {', '.join(splits)} "
        "alone. Give data with that split too, or other rewards."
    )


def splits_of(arrays: Mapping[str, np.ndarray], column: str) -> list[str]:
    """The splits whose arrays are called ``SPLIT/COLUMN``, the known ones first."""
    found = [name.removesuffix(f"/{column}") for name in arrays if name.endswith(f"/{column}")]
    order = ("train", "validation", "test", *found)
    return sorted(found, key=order.index)
