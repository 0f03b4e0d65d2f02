"""Exact posteriors over what a task hides, and the information that an utterance gains about it."""

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np


@runtime_checkable
class ExactPosterior(Protocol):
    """A task that knows what a learner should believe: Bayes' rule over the k hidden things.

    The posterior rests on what the learner has seen and on the rules, never on the truth.
    """

    def hypotheses(self, state: Any) -> int:
        """Number of things that may be hidden (k); the same in every state of a dialogue."""
        ...

    def posterior(self, state: Any) -> np.ndarray:
        """(k,) float64, sums to 1: the probability of each, given what the learner has seen."""
        ...

    def truth(self, state: Any) -> int:
        """The place of the one that is hidden, from 0 to k - 1.

        Raises:
            ValueError: the task never settles on one.
        """
        ...

    def suppose(self, state: Any, place: int) -> Any:
        """A copy of a dialogue in which another thing is hidden, the rest being as it was."""
        ...


@runtime_checkable
class SupposesHidden(Protocol):
    """A task in which a party can think of all that it is not told, to plan ahead."""

    def suppositions(self, state: Any, party: str) -> Sequence[Any]:
        """Copies of a dialogue, one for each thing that may be hidden from a party.

        All are equally likely before anybody speaks. What is hidden in `state` is not looked at.
        """
        ...

    def begun(self, state: Any) -> Any:
        """The same dialogue before anybody spoke."""
        ...


@runtime_checkable
class NamesTruth(Protocol):
    """A task in which what is hidden can be said."""

    def naming(self, state: Any) -> str:
        """The utterance that names it, such as ``is it a cat?``.

        Raises:
            ValueError: the task never settles on one.
        """
        ...


@runtime_checkable
class ExactValue(Protocol):
    """A task that knows what the best play is worth."""

    def value(self, state: Any) -> float:
        """The return that the learner can expect from here on, if it plays best.

        It rests on what the learner has seen, never on what is hidden; 0 once the dialogue is over.

        Raises:
            ValueError: it is not known at these settings, or the search would be too long.
        """
        ...


def entropy(p: np.ndarray) -> np.ndarray:
    """Shannon's entropy in bits of distributions (..., k), a number for each: (...)."""
    p = np.asarray(p, np.float64)
    logs = np.log2(p, out=np.zeros_like(p), where=p > 0)  # 0 log 0 = 0
    bits: np.ndarray = np.maximum(-(p * logs).sum(-1), 0.0)
    return bits


def information_gain(p: np.ndarray, likelihoods: np.ndarray) -> np.ndarray:
    """Bits that the answer to a question tells on average about what is hidden.

    The mutual information I(hidden; answer) = H(answer) - H(answer | hidden), which equals the
    expected fall of the posterior's entropy (Lindley, 1956).

    Args:
        p: (k,) belief in each hidden thing.
        likelihoods: (..., k, answers) probability of each answer if that thing is the hidden one,
            for one question or for an array of them; each row sums to 1.

    Returns:
        A number (...) for each question, at least 0.

    Raises:
        ValueError: the shapes do not agree.
    """
    p, likelihoods = np.asarray(p, np.float64), np.asarray(likelihoods, np.float64)
    if p.ndim != 1 or likelihoods.ndim < 2 or likelihoods.shape[-2] != len(p):
        raise ValueError(
            "information_gain: expected beliefs (k,) and likelihoods (..., k, answers); got "
            f"{p.shape} and {likelihoods.shape}. Give a row of likelihoods for each hidden thing."
        )
    gain: np.ndarray = entropy(p @ likelihoods) - entropy(likelihoods) @ p
    return np.maximum(gain, 0.0)
