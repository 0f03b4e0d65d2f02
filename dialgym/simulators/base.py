"""The protocol of anyone who speaks by rules: a user simulator, or a scripted policy."""

from typing import Any, Protocol, runtime_checkable

import numpy as np


@runtime_checkable
class Speaker(Protocol):
    """Says the next utterance of the party whose turn it is.

    A simulator plays the other party of a single-agent view; a scripted policy plays the learner.
    Both meet this protocol, so that either side of a task can be given to either.
    """

    def reply(self, task: Any, state: Any, rng: np.random.Generator) -> str:
        """The utterance of `task.speaker(state)`. Must leave `state` as it was."""
        ...
