"""Exchanges: an utterance of the learner and what it led to, for one dialogue and as arrays."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dialgym.language import Utterance
from dialgym.rewards import Components
from dialgym.tasks.base import BatchOutcome, Parties


class Exchange(NamedTuple):
    """What one utterance of the learner led to, up to its next turn.

    Reward and components are the learner's, summed over the utterances of both parties.
    """

    reward: float
    terminated: bool
    truncated: bool
    heard: Sequence[Utterance]
    components: Components
    success: bool | None

    @property
    def over(self) -> bool:
        return self.terminated or self.truncated


def add(first: Components, second: Components) -> Components:
    """The components of two utterances, summed by name."""
    total = dict(first)
    for name, value in second.items():
        total[name] = total.get(name, 0.0) + value
    return total


def gather(exchanges: Sequence[Exchange], parties: Parties) -> BatchOutcome:
    """The exchanges of k dialogues of the `parties` as arrays."""
    heard = [(row, line) for row, e in enumerate(exchanges) for line in e.heard]
    return BatchOutcome(
        np.array([e.reward for e in exchanges], np.float64),
        np.array([e.terminated for e in exchanges], bool),
        np.array([e.truncated for e in exchanges], bool),
        np.array([bool(e.success) for e in exchanges], bool),
        _columns([e.components for e in exchanges]),
        np.array([line.text for _, line in heard], np.str_),
        np.array([parties.index(line.speaker) for _, line in heard], np.int64),
        np.array([row for row, _ in heard], np.int64),
    )


def _columns(components: Sequence[Components]) -> dict[str, np.ndarray]:
    """Each component over all rows; NaN in a row that does not have it."""
    names = dict.fromkeys(name for row in components for name in row)
    return {name: np.array([row.get(name, np.nan) for row in components]) for name in names}
