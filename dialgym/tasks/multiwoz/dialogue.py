"""One dialogue on acts, without any text: its state, and what each party's utterance does to it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dialgym.tasks.multiwoz.evaluator import Record
from dialgym.tasks.multiwoz.types import Acts, Belief, Goal
from dialgym.tasks.multiwoz.user import UserState

Generator = np.random.Generator


@dataclass(frozen=True)
class Settings:
    """How dialogues go.

    Attributes:
        turns: most utterances of the system.
        reward: a name of `rewards.REWARDS`.
        strict: success asks for the right people, day, stay and time of bookings too.
        fidelity: ``"correct"``, or ``"convlab2"`` with the faults of the original (`FAULTS`).
    """

    turns: int = 20
    reward: str = "default"
    strict: bool = False
    fidelity: str = "correct"


@dataclass(slots=True)
class MultiWOZState:
    """One dialogue."""

    goal: Goal  # never changed
    user: UserState  # the agenda, and what the user has been told; kept whoever plays the user
    belief: Belief  # what the system has understood, with the last acts of both
    record: Record  # the evaluator's
    turns: int = 0  # utterances of the system
    user_speaks: bool = True
    ended: bool = False

    def copy(self) -> "MultiWOZState":
        """An independent copy."""
        return MultiWOZState(
            self.goal,
            self.user.copy(),
            self.belief.copy(),
            self.record.copy(),
            self.turns,
            self.user_speaks,
            self.ended,
        )


class Turn(NamedTuple):
    """What an utterance led to, for the system.

    Attributes:
        components: its reward in parts by name, which add up to it.
        terminated: the user has said goodbye.
        truncated: the turn limit has cut the dialogue short.
        success: whether the goal was met; None while the dialogue goes on.
    """

    components: Mapping[str, float] = {}
    terminated: bool = False
    truncated: bool = False
    success: bool | None = None


class Rules:
    """The rules of dialogues in one world. Immutable, shared by all dialogues.

    Args:
        world: database, values and goals.
        settings: see `Settings`.

    Attributes:
        tracker, evaluator, agenda: parts that are shared too.
    """

    def begin(self, goal: Goal, rng: Generator) -> MultiWOZState:
        """A new dialogue, in which the user speaks first."""
        raise NotImplementedError

    def user_turn(self, state: MultiWOZState, acts: Acts, rng: Generator) -> Turn:
        """The user says `acts`: the system tracks them, and the system's last turn is rewarded."""
        raise NotImplementedError

    def system_turn(self, state: MultiWOZState, acts: Acts, rng: Generator) -> Turn:
        """The system says `acts`: they are judged, and the agenda changes by them."""
        raise NotImplementedError
