"""Acts, goals and beliefs of multi-domain dialogues."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any, NamedTuple

NONE, ASKED = "none", "?"
"""The slot or value of an act that has none; the value of a request."""


class DialogueAct(NamedTuple):
    """One act of an utterance, in the notation of ConvLab and the corpus.

    Attributes:
        intent: ``Inform``, ``Request``, ``Recommend``, ``NoOffer``, ``Book``, ``bye`` ...
        domain: ``Hotel``, ``Train``, ``Booking``, ``general`` ...
        slot: the short name of a slot, ``Area``, ``Price``, ``Choice``; or ``none``.
        value: ``north``, ``18``; ``?`` of a request; or ``none``.
    """

    intent: str
    domain: str
    slot: str = NONE
    value: str = NONE


Acts = tuple[DialogueAct, ...]
"""An utterance: several acts, in the order in which they are said."""
Constraints = Mapping[str, str]
"""Slot -> value, by the slots' names in the database: ``area``, ``price range``, ``leaveAt``."""
EMPTY: Constraints = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class DomainGoal:
    """The user's goal in one domain.

    Attributes:
        info: constraints that some row of the database meets.
        fail_info: constraints asked for first, that no row meets; empty where there are none.
        book: how to book, by ``people``, ``day``, ``stay``, ``time``; empty for no booking.
        fail_book: bookings to try first.
        requests: slots to be told of.
    """

    info: Constraints = field(default_factory=dict)
    fail_info: Constraints = field(default_factory=dict)
    book: Constraints = field(default_factory=dict)
    fail_book: Constraints = field(default_factory=dict)
    requests: tuple[str, ...] = ()

    def __getstate__(self) -> list[Any]:  # a read-only mapping cannot be pickled
        return [*map(dict, (self.info, self.fail_info, self.book, self.fail_book)), self.requests]

    def __setstate__(self, state: list[Any]) -> None:
        for part, value in zip(fields(self), state, strict=True):
            object.__setattr__(self, part.name, value)


@dataclass(frozen=True, slots=True)
class MultiWOZGoal:
    """The user's goal, domain by domain in the order in which it asks. Never changed."""

    domains: Mapping[str, DomainGoal]


@dataclass(slots=True)
class MultiWOZBelief:
    """The system's belief and its own acts; see `tracker`.

    Attributes:
        constraints: domain -> slot -> value, those of bookings included.
        requests: domain -> slots asked for.
        user_acts, system_acts: the last of each party.
        domain: the last of those with a table (attraction, hotel, restaurant, train) that an act
            of the user was about: what ``Booking`` refers to; empty before there was one.
        booked: domain -> the reference that the system gave with its booking.
        offered: domain -> row of its table that the system named last.
    """

    constraints: dict[str, dict[str, str]] = field(default_factory=dict)
    requests: dict[str, tuple[str, ...]] = field(default_factory=dict)
    user_acts: Acts = ()
    system_acts: Acts = ()
    domain: str = ""
    booked: dict[str, str] = field(default_factory=dict)
    offered: dict[str, int] = field(default_factory=dict)

    def copy(self) -> "MultiWOZBelief":
        """An independent copy."""
        constraints = {domain: dict(slots) for domain, slots in self.constraints.items()}
        said = self.user_acts, self.system_acts, self.domain
        return MultiWOZBelief(
            constraints, self.requests.copy(), *said, self.booked.copy(), self.offered.copy()
        )
