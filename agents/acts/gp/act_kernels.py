"""Covariances of two acts by their names: delta, of a kind, handcrafted, and by word vectors."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from agents.acts.gp.kernels import kind_of
from agents.storage.values import storable
from dialgym.errors import unknown, with_settings
from dialgym.io.files import read_file

WORDS = {"byname": ("name",), "reqmore": ("request", "more")}
"""Words of acts that are written as one, as PyDial reads them."""
RANKED = re.compile(r"(slot\d+)\.(.+)")
"""An act about a slot that goes by its rank."""
EVERY = ""
"""The only group of a kernel, where it tells no others apart."""


class ActKernel:
    """Kernel of acts: 1 for the same act, less for two others.

    Slots go by their rank in names (``slot00.request``), where the env's acts have a `structure`.
    """

    def group(self, act: str) -> str:
        """The group of an act; acts of different groups must have no covariance."""
        return EVERY

    def covariance(self, left: str, right: str) -> float:
        """The covariance of two different acts of a group, from 0 to less than 1."""
        raise NotImplementedError

    def of_slots(self, acts: tuple[str, ...], slots: Mapping[str, str]) -> ActKernel:
        """The kernel for acts of a domain, whose slots have these names by rank; itself here."""
        return self


def similarities(kernel: ActKernel, left: list[str], right: list[str]) -> np.ndarray:
    """(n, m) covariances of two lists of acts."""

    def pair(one: str, other: str) -> float:
        if one == other:
            return 1.0
        return kernel.covariance(one, other) if kernel.group(one) == kernel.group(other) else 0.0

    return np.array([[pair(one, other) for other in right] for one in left])


@storable
@dataclass(frozen=True)
class DeltaKernel(ActKernel):
    """PyDial's "delta": acts are learned apart from one another."""

    def group(self, act: str) -> str:
        """Each act alone."""
        return act


@storable
@dataclass(frozen=True)
class KindKernel(ActKernel):
    """`similarity` for two acts of a kind: requests of two slots tell of one another.

    Raises:
        ValueError: `similarity` is not from 0 to less than 1.
    """

    similarity: float = 0.2

    def __post_init__(self) -> None:
        if not 0 <= self.similarity < 1:
            raise ValueError(
                f"act kernel 'kind': expected 0 <= similarity < 1, got {self.similarity}"
            )

    def group(self, act: str) -> str:
        """The acts of a kind."""
        return kind_of(act)

    def covariance(self, left: str, right: str) -> float:
        """See `ActKernel`."""
        return self.similarity


@storable
@dataclass(frozen=True)
class HDCKernel(ActKernel):
    """PyDial's "hdc": 0.5 for two acts of the same intent, or about the same slot."""

    def group(self, act: str) -> str:
        """All acts of an intent and a slot, and each of the others alone."""
        return EVERY if len(_parts(act)) == 2 else act

    def covariance(self, left: str, right: str) -> float:
        """See `ActKernel`."""
        return 0.5 * any(one == other for one, other in zip(_parts(left), _parts(right)))


@storable
@dataclass(frozen=True)
class DistributedKernel(ActKernel):
    """PyDial's "distributed": the logistic function of exp(-|x - y|^2 / length_scale).

    x is the sum of the vectors of an act's words: of its intent and its slot. An act of a domain
    met later, with more slots, is similar to none.

    Args:
        vectors: a text file with a word and its numbers on each line, as of GloVe and word2vec.
        length_scale: PyDial's `distlength`.
        found: vector by act; those of the file, as soon as the acts are known.

    Raises:
        ValueError: `length_scale` is not above 0.
    """

    vectors: str | PathLike[str]
    length_scale: float = 20.0
    found: Mapping[str, list[float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.length_scale > 0:
            raise ValueError(
                f"act kernel 'distributed': expected length_scale > 0, got {self.length_scale}"
            )

    def covariance(self, left: str, right: str) -> float:
        """See `ActKernel`."""
        if not {left, right} <= self.found.keys():
            return 0.0
        apart = np.subtract(self.found[left], self.found[right])
        return float(1.0 / (1.0 + np.exp(-np.exp(-(apart @ apart) / self.length_scale))))

    def of_slots(self, acts: tuple[str, ...], slots: Mapping[str, str]) -> ActKernel:
        """Read the vectors of the acts' words, once.

        Raises:
            ValueError: there is no such file, or it lacks some of them.
        """
        if self.found:
            return self
        words = {act: _words(act, slots) for act in acts}
        needed = {word for each in words.values() for word in each}
        known = word_vectors(Path(self.vectors), needed)
        if missing := sorted(needed - known.keys()):
            raise ValueError(
                f"act kernel 'distributed': {str(self.vectors)!r} lacks vectors of the acts' words "
                f"{', '.join(missing)}. Add a line for each of them."
            )
        sums = {act: sum(known[word] for word in each).tolist() for act, each in words.items()}
        return replace(self, vectors=str(self.vectors), found=sums)


def word_vectors(path: Path, words: set[str]) -> dict[str, Any]:
    """Vectors of some words, as far as a text file has them.

    Raises:
        ValueError: there is no such file, or a line that is not a word and as many numbers.
    """
    if not path.is_file():
        raise ValueError(
            "act kernel 'distributed': expected a text file of word vectors, a word and its "
            f"numbers on each line; there is none at {str(path)!r}. Check the path."
        )
    found: dict[str, Any] = {}
    for number, line in enumerate(read_file(path).decode("utf-8", "replace").split("\n"), 1):
        word, *numbers = line.split() or [""]
        if word not in words:
            continue
        try:
            found[word] = np.array(numbers, float)
        except ValueError:
            raise ValueError(f"{path}, line {number}: expected {word!r} and numbers") from None
        if len(found[word]) != len(next(iter(found.values()))) or not numbers:
            raise ValueError(f"{path}, line {number}: its length is not that of the others")
    return found


def _parts(act: str) -> list[str]:
    """Intent and slot of ``slot00.request`` or ``request_food``; else the name."""
    ranked = RANKED.fullmatch(act)
    return [ranked[2], ranked[1]] if ranked else act.split("_", 1)


def _words(act: str, slots: Mapping[str, str]) -> list[str]:
    """The words of an act's name, with the name of its slot."""
    parts = (word for part in _parts(act) for word in re.split("[ _]", slots.get(part, part)))
    return [word for part in parts for word in WORDS.get(part, (part,))]


ACT_KERNELS: Mapping[str, Callable[..., ActKernel]] = {
    "delta": DeltaKernel,
    "kind": KindKernel,
    "hdc": HDCKernel,
    "distributed": DistributedKernel,
}


def act_kernel_named(given: str | Mapping[str, Any] | ActKernel) -> ActKernel:
    """One of `ACT_KERNELS` by name, or by a mapping with ``kernel`` and its settings; or itself.

    Raises:
        ValueError: another name, or other settings.
    """
    if isinstance(given, ActKernel):
        return given
    settings = {"kernel": given} if isinstance(given, str) else dict(given)
    name = settings.pop("kernel", None)
    if not isinstance(name, str) or name not in ACT_KERNELS:
        raise unknown("act kernel", name, ACT_KERNELS)
    return with_settings(ACT_KERNELS[name], f"act kernel {name!r}", settings)
