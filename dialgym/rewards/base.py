"""Base classes of rewards: components, fixed costs, and scores of replies."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import Any, ClassVar, NamedTuple

import numpy as np

Components = dict[str, float]
"""The components of one party's reward by name; their sum is the reward."""


@dataclass(frozen=True)
class Cost:
    """A fixed reward of `-amount` for whatever it is charged for, logged as `name`."""

    name: str
    amount: float = 1.0

    def charge(self) -> Components:
        """The component to be added to an utterance's reward."""
        return {self.name: -self.amount}


class Reply(NamedTuple):
    """The input of a reward of language.

    Attributes:
        text: what was said.
        context: what was said before, oldest first.
        references: what people said there.
        labels: what else is known of the place, such as the `act` of the first reference.
    """

    text: str
    context: tuple[str, ...] = ()
    references: tuple[str, ...] = ()
    labels: Mapping[str, Any] = {}


class Reward(ABC):
    """A score of replies. Immutable; its models are loaded when it scores for the first time.

    What is loaded lies in a `functools.cached_property`, which is not pickled.

    A subclass has a `name`, by which `envs_registry.yaml` and logs know it, and takes its settings
    as keyword arguments. One that learns from labelled replies has an argument `examples`.
    """

    name: ClassVar[str]
    bounds: tuple[float, float] = (0.0, 1.0)
    """Lowest and highest score."""

    @abstractmethod
    def score(self, replies: Sequence[Reply]) -> np.ndarray:
        """Scores (k,) float64 of k replies, each independent of the others."""

    def __getstate__(self) -> dict[str, Any]:
        """The settings alone: what a `cached_property` holds, such as a model, stays here."""
        kind = type(self)
        return {
            name: value
            for name, value in vars(self).items()
            if not isinstance(getattr(kind, name, None), cached_property)
        }


@dataclass(frozen=True)
class FunctionReward(Reward):
    """A score of replies by a function of their text.

    Attributes:
        function: from the text of a reply to its score; the same for the same text.
        bounds: lowest and highest score, infinite where nothing is known of them.
    """

    name: ClassVar[str] = "function"
    function: Callable[[str], float]
    bounds: tuple[float, float] = (-math.inf, math.inf)

    def score(self, replies: Sequence[Reply]) -> np.ndarray:
        return np.array([self._score(reply.text) for reply in replies], np.float64)

    def _score(self, text: str) -> float:
        value = self.function(text)
        if not isinstance(value, Real | np.bool_):
            raise ValueError(
                f"a function as reward must return a number; got {value!r:.80} for the reply "
                f"{text!r:.80}."
            )
        return float(value)
