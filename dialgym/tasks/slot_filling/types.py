"""The state of a dialogue: the user's state, the system's belief, what was said."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from dialgym.language import Utterance
from dialgym.language.acts import Act
from dialgym.tasks.slot_filling.domain.goals import SlotFillingGoal
from dialgym.tasks.slot_filling.user import SlotFillingUserState


@dataclass(slots=True)
class SlotFillingBelief:
    """The system's belief and memory; arrays are replaced, never written into."""

    goals: np.ndarray  # (G,) float64: of each informable slot the values, none, dontcare
    methods: np.ndarray  # (6,) float64: how the user looks for a row
    discourse: np.ndarray  # (7,) float64: what else the user does; the last is bye
    requested: np.ndarray  # (R,) float64: which slots it asks for
    entity: str = ""  # the name of the row offered last
    entities: tuple[str, ...] = ()  # the rows offered since there was last nothing to offer
    told_none: bool = False  # the system's last act was that there is nothing
    offered: bool = False  # the system's last act was an offer
    alternatives: bool = False  # another row was asked for, and has not been looked for since

    def copy(self) -> "SlotFillingBelief":
        """An independent copy; the arrays are shared because nothing writes into them."""
        return SlotFillingBelief(
            self.goals,
            self.methods,
            self.discourse,
            self.requested,
            self.entity,
            self.entities,
            self.told_none,
            self.offered,
            self.alternatives,
        )


class TopValues(NamedTuple):
    """The two most believed values of a slot; without any, its first values with p = 0."""

    value: str
    p: float
    second: str
    second_p: float


class Accepted(NamedTuple):
    """A value that is more believed than none, and than its threshold."""

    slot: str
    value: str
    p: float


class Summary(NamedTuple):
    """A belief in short.

    Attributes:
        best: of each slot that the system can ask for.
        accepted: those of them that have an accepted value, alphabetical.
        name: the most believed name; None if that is none.
        name_p: how much it is believed.
        method: how the user looks for a row, one of `METHODS`; ``byconstraints`` in doubt.
        discourse: what else it does, one of `DISCOURSE`; none in doubt.
        requested: the slots that it asks for.
    """

    best: Mapping[str, TopValues]
    accepted: tuple[Accepted, ...]
    name: str | None
    name_p: float
    method: str
    discourse: str
    requested: tuple[str, ...]


@dataclass(slots=True)
class SlotFillingState:
    """A dialogue."""

    goal: SlotFillingGoal  # as it was drawn; never changed
    user_state: SlotFillingUserState
    planned: tuple[str, SlotFillingUserState]  # the simulated user's next text, its state then
    belief: SlotFillingBelief
    summary: Summary  # of the belief; never changed
    system_act: Act  # what the system said last
    simulated: bool = True  # the user has said last what the simulated one would have
    turns: int = 0  # of the system, its greeting aside
    replies: int = 0  # of the user
    user_speaks: bool = True
    told: frozenset[str] = frozenset()  # slots of which the user has told a value
    chosen: tuple[str, str] | None = None  # summary act about to be said, and its text
    heard_by_system: list[Utterance] = field(default_factory=list)
    heard_by_user: list[Utterance] = field(default_factory=list)
    misheard: list[str] = field(default_factory=list)  # acts of the user taken for others

    def copy(self) -> "SlotFillingState":
        """An independent copy."""
        return SlotFillingState(
            self.goal,
            self.user_state.copy(),
            self.planned,
            self.belief.copy(),
            self.summary,
            self.system_act,
            self.simulated,
            self.turns,
            self.replies,
            self.user_speaks,
            self.told,
            self.chosen,
            self.heard_by_system.copy(),
            self.heard_by_user.copy(),
            self.misheard.copy(),
        )
