"""Speakers with whom something goes wrong."""

from typing import Any

import numpy as np

from dialgym.simulators import Speaker
from dialgym.views.dialogue import default_speaker


class Faulty:
    """The default speaker of a party, which fails now and then.

    Whether it does is drawn from the dialogue's generator, so that equal dialogues fail alike.

    Args:
        probability: of failing at a reply.
    """

    def __init__(self, probability: float = 0.02) -> None:
        self.probability = probability
        self._speaker: Speaker | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Without the speaker, which each process finds by itself."""
        return {**vars(self), "_speaker": None}

    def reply(self, task: Any, state: Any, rng: np.random.Generator) -> str:
        """The speaker's reply, or a ConnectionError."""
        if rng.random() < self.probability:
            raise ConnectionError("the service of speakers does not answer")
        if self._speaker is None:
            party = task.speaker(state)
            self._speaker = task.speaker_named(party, default_speaker(task, party))
        return self._speaker.reply(task, state, rng)
