"""Length, distinct n-grams and repetition of a reply as rewards."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dialgym.errors import whole_number
from dialgym.rewards.base import Reply, Reward
from dialgym.rewards.words import ngrams, words


@dataclass(frozen=True, kw_only=True)
class Length(Reward):
    """1 for a reply of `low` to `high` words, falling to 0 over `margin` words on either side.

    Attributes:
        target: a single length instead of a range.
        low: fewest words of full score.
        high: most words of full score.
        margin: how many words further out the score is 0; 0 for a sharp edge.
    """

    name: ClassVar[str] = "length"
    target: float | None = None
    low: float = 5
    high: float = 25
    margin: float = 5

    def __post_init__(self) -> None:
        low, high = self.range
        if not 0 <= low <= high or not self.margin >= 0:
            raise ValueError(
                "reward 'length' expects 0 <= low <= high and margin >= 0; "
                f"got low {low}, high {high}, margin {self.margin}."
            )

    @property
    def range(self) -> tuple[float, float]:
        """Fewest and most words of full score."""
        return (self.low, self.high) if self.target is None else (self.target, self.target)

    def score(self, replies: Sequence[Reply]) -> np.ndarray:
        """Scores (k,) from 0 to 1."""
        lengths = np.array([len(words(reply.text)) for reply in replies], np.float64)
        low, high = self.range
        outside = np.maximum(np.maximum(low - lengths, lengths - high), 0)
        return np.maximum(0.0, 1 - outside / self.margin) if self.margin else 1.0 * (outside == 0)


@dataclass(frozen=True, kw_only=True)
class Distinct(Reward):
    """Distinct n-grams of words over all n-grams of the reply, Li et al. (2016); 0 without any.

    Attributes:
        n: words of an n-gram.
    """

    name: ClassVar[str] = "distinct"
    n: int = 1

    def __post_init__(self) -> None:
        whole_number("n", self.n, f"reward {self.name!r}")

    def score(self, replies: Sequence[Reply]) -> np.ndarray:
        """Scores (k,) from 0 to 1."""
        grams = [ngrams(words(reply.text), self.n) for reply in replies]
        return np.array([len(set(g)) / max(len(g), 1) for g in grams], np.float64)


@dataclass(frozen=True, kw_only=True)
class Repetition(Reward):
    """The share of the reply's n-grams that were said before; give it a negative weight.

    Attributes:
        n: words of an n-gram.
        context: n-grams of the context count as said before, not those of the reply alone.
    """

    name: ClassVar[str] = "repetition"
    n: int = 3
    context: bool = False

    def __post_init__(self) -> None:
        whole_number("n", self.n, f"reward {self.name!r}")

    def score(self, replies: Sequence[Reply]) -> np.ndarray:
        """Scores (k,) from 0 to 1."""
        return np.array([self._share(reply) for reply in replies], np.float64)

    def _share(self, reply: Reply) -> float:
        grams = ngrams(words(reply.text), self.n)
        before = reply.context if self.context else ()
        said = {gram for text in before for gram in ngrams(words(text), self.n)}
        new = len(set(grams) - said)
        return (len(grams) - new) / max(len(grams), 1)
