"""The state of a dialogue: what the user has in mind, what the system believes, what was said."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from dialgym.language import Utterance
from dialgym.language.acts import Act, Item

NULL = Act("null")


@dataclass(slots=True)
class Mind:
    """What the simulated user has in mind."""

    constraints: list[Item]  # what the row must be like; on `name` there may be several
    requests: dict[str, str | None]  # slot -> what the system has told of it
    agenda: list[Act]  # a stack; the last is said next
    chances: Mapping[str, float]  # of each choice, see `behaviour`; never changed
    full_patience: int
    patience: int
    used: dict[str, frozenset[str]] = field(default_factory=dict)  # values it has asked for
    heard: Act | None = None  # what the system said last
    said: Act | None = None  # what the user said last
    repeatable: Act = NULL  # what it says again when it has not understood
    relaxing: bool = False  # there is nothing as it wants it
    offered: bool = False  # a row has been offered before
    told_none: bool = False  # the system knew what it wanted, and had nothing

    def copy(self) -> "Mind":
        """An independent copy."""
        return Mind(
            self.constraints.copy(),
            self.requests.copy(),
            self.agenda.copy(),
            self.chances,
            self.full_patience,
            self.patience,
            self.used.copy(),
            self.heard,
            self.said,
            self.repeatable,
            self.relaxing,
            self.offered,
            self.told_none,
        )

    def wanted(self, slot: str) -> str | None:
        """The value that a slot must have, if any."""
        for item in self.constraints:
            if item.slot == slot and not item.negated:
                return item.value
        return None

    def unwanted(self, slot: str) -> list[str | None]:
        """The values that a slot must not have."""
        return [item.value for item in self.constraints if item.slot == slot and item.negated]

    def constrains(self, slot: str) -> bool:
        """Whether anything is asked of a slot."""
        return any(item.slot == slot for item in self.constraints)

    def open_requests(self) -> list[str]:
        """The slots that the system has not told yet."""
        return [slot for slot, value in self.requests.items() if value is None]

    def forget_answers(self) -> None:
        """Begin the requests anew, because another row is talked about."""
        self.requests = dict.fromkeys(self.requests)


@dataclass(slots=True)
class Belief:
    """What the system believes and remembers; arrays are replaced, never written into."""

    goals: np.ndarray  # (G,) float64: of each informable slot the values, none, dontcare
    methods: np.ndarray  # (6,) float64: how the user looks for a row
    discourse: np.ndarray  # (7,) float64: what else the user does; the last is bye
    requested: np.ndarray  # (R,) float64: which slots it asks for
    venue: str = ""  # the row offered last
    venues: tuple[str, ...] = ()  # the rows offered since there was last nothing to offer
    told_none: bool = False  # the system's last act was that there is nothing
    offered: bool = False  # the system's last act was an offer
    alternatives: bool = False  # another row was asked for, and has not been given since

    def copy(self) -> "Belief":
        """An independent copy; the arrays are shared because nothing writes into them."""
        return Belief(
            self.goals,
            self.methods,
            self.discourse,
            self.requested,
            self.venue,
            self.venues,
            self.told_none,
            self.offered,
            self.alternatives,
        )


class Best(NamedTuple):
    """The two most believed values of a slot; without any, its first values with p = 0."""

    value: str
    p: float
    second: str
    second_p: float


class Accepted(NamedTuple):
    """A value that is more believed than none, and than chance."""

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

    best: Mapping[str, Best]
    accepted: tuple[Accepted, ...]
    name: str | None
    name_p: float
    method: str
    discourse: str
    requested: tuple[str, ...]


@dataclass(slots=True)
class SlotFillingState:
    """A dialogue."""

    mind: Mind
    ahead: tuple[str, Mind]  # what the simulated user would say next, and its mind after that
    belief: Belief
    summary: Summary  # of the belief; never changed
    system_act: Act  # what the system said last
    simulated: bool = True  # the user has said last what the simulated one would have
    turns: int = 0  # of the system, its greeting aside
    replies: int = 0  # of the user
    user_speaks: bool = True
    told: frozenset[str] = frozenset()  # slots of which the user has told a value
    goal: tuple[Utterance, ...] = ()  # the user's own note of what it wants
    heard_by_system: list[Utterance] = field(default_factory=list)
    heard_by_user: list[Utterance] = field(default_factory=list)

    def copy(self) -> "SlotFillingState":
        """An independent copy."""
        return SlotFillingState(
            self.mind.copy(),
            (self.ahead[0], self.ahead[1].copy()),
            self.belief.copy(),
            self.summary,
            self.system_act,
            self.simulated,
            self.turns,
            self.replies,
            self.user_speaks,
            self.told,
            self.goal,
            self.heard_by_system.copy(),
            self.heard_by_user.copy(),
        )
