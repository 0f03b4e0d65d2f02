"""Dialogue of two parties that are both played from outside."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dialgym.language import Utterance
from dialgym.tasks import Outcome, Task
from dialgym.tasks.return_checker import watch_returns
from dialgym.views.arguments import undrawn_on_error
from dialgym.views.dialogue import check_room


class TwoPartyDialogue:
    """One dialogue and what both parties have seen of it.

    Args:
        task: the rules.
        sides: for each party its side.
    """

    def __init__(self, task: Task, sides: Mapping[str, Any]) -> None:
        self.task, self.sides = task, sides
        self.state: Any = None
        self.speaker = task.parties[0]  # who has the floor
        self.turns = dict.fromkeys(sides, 0)  # utterances of each
        self.heard: dict[str, Sequence[Utterance]] = {}  # new to each
        self._seen = dict.fromkeys(sides, 0)
        self._watches = [watch_returns(task, party) for party in sides]

    def begin(self, rng: np.random.Generator, options: Mapping[str, Any]) -> str:
        """Begin; the party that has the floor."""
        with undrawn_on_error([rng] if options else ()):
            self.state = self.task.initial(rng, options)
        fits = self.tell_all()
        floor = self.give_floor()
        check_room(self.task, self.speaker, fits and floor)
        return self.speaker

    def speak(self, party: str, text: str, rng: np.random.Generator) -> Outcome:
        """Let a party say a text."""
        outcome = self.task.speak(self.state, text, rng)
        self.turns[party] += 1
        self._seen[party] += 1  # it knows its own words
        over = outcome.terminated or outcome.truncated
        for watch in filter(None, self._watches):
            watch.note_one(outcome.rewards[watch.party], outcome.parts(watch.party), over)
        return outcome

    def tell_all(self) -> bool:
        """Append to each side what is new to it; True if all of it fits."""
        fits = True
        for party, side in self.sides.items():
            lines = self.task.transcript(self.state, party)
            self.heard[party] = lines[self._seen[party] :]
            fits &= side.append(self.heard[party])
            self._seen[party] = len(lines)
        return fits

    def give_floor(self) -> bool:
        """Open the next utterance; True if it fits."""
        self.speaker = self.task.speaker(self.state)
        fits: bool = self.sides[self.speaker].open()
        return fits
