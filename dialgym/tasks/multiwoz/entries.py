"""Acts without values, ``Domain-Intent-Slot-k``: the 209 of the system and the 78 of the user.

`k` is the place of the row that an act is about among those that meet what is believed, ``?`` of a
request, ``none`` of an act without a slot. Both vocabularies are those of the corpus in ConvLab-2.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from dialgym.tasks.multiwoz.ontology import BOOKING, GENERAL
from dialgym.tasks.multiwoz.types import ASKED, NONE, Acts

Kinds = Mapping[str, Mapping[str, str]]
"""Domain -> intent -> slots, each with how many of them one utterance can have: ``Name*4``."""
_SYSTEM: Kinds = {
    "Attraction": {
        "Inform": "Addr*3 Area*3 Choice*3 Fee*2 Name*4 Phone Post Type*5",
        "NoOffer": "Area Type none",
        "Recommend": "Addr*2 Area Fee Name Phone Post Type",
        "Request": "Area Name Price Type",
        "Select": "Type*2 none",
    },
    BOOKING: {
        "Book": "Day Name People Ref Stay Time none",
        "Inform": "Day Name People none",
        "NoBook": "Day Name Time none",
        "Request": "Day People Stay Time",
    },
    "Hospital": {"Inform": "Addr Department Phone Post", "Request": "Department"},
    "Hotel": {
        "Inform": "Addr*2 Area*2 Choice*3 Internet Name*3 Parking Phone Post Price*2 "
        "Stars*2 Type*2",
        "NoOffer": "Area Price Stars Type none",
        "Recommend": "Addr Area Internet Name Parking Price Stars Type",
        "Request": "Area Internet Name Parking Price Stars Type",
        "Select": "Area Name Price*2 Type*2 none",
    },
    "Police": {"Inform": "Addr Name Phone Post"},
    "Restaurant": {
        "Inform": "Addr*2 Area*2 Choice*3 Food*4 Name*4 Phone Post*2 Price*2 Ref",
        "NoOffer": "Area Food Price none",
        "Recommend": "Addr Area Food Name Phone Post Price",
        "Request": "Area Food Name Price",
        "Select": "Area*2 Food*3 Name Price*2 none",
    },
    "Taxi": {
        "Inform": "Arrive Car Depart Dest Leave Phone",
        "Request": "Arrive Depart Dest Leave",
    },
    "Train": {
        "Inform": "Arrive*2 Choice*2 Day Depart Dest Id Leave*3 Ref Ticket Time",
        "OfferBook": "Arrive Id Leave none",
        "OfferBooked": "Arrive Day Depart Dest Id Leave People Ref Ticket",
        "Request": "Arrive Day Depart Dest Leave People",
        "Select": "Leave none",
    },
    GENERAL: {"bye": NONE, "greet": NONE, "reqmore": NONE, "welcome": NONE},
}
_USER: Kinds = {
    "Attraction": {"Inform": "Area Name Type none", "Request": "Addr Area Fee Phone Post Type"},
    "Hospital": {"Inform": "Department none", "Request": "Addr Phone Post"},
    "Hotel": {
        "Inform": "Area Day Internet Name Parking People Price Stars Stay Type none",
        "Request": "Addr Area Internet Parking Phone Post Price Ref Stars Type",
    },
    "Police": {"Inform": "Name none", "Request": "Addr Phone Post"},
    "Restaurant": {
        "Inform": "Area Day Food Name People Price Time none",
        "Request": "Addr Area Food Phone Post Price Ref",
    },
    "Taxi": {"Inform": "Arrive Depart Dest Leave none", "Request": "Car"},
    "Train": {
        "Inform": "Arrive Day Depart Dest Leave People none",
        "Request": "Arrive Id Leave Ref Ticket Time",
    },
    GENERAL: {"bye": NONE, "greet": NONE, "thank": NONE},
}
REQUEST = "Request"
REFUSALS = ("NoOffer", "NoBook")
"""Intents whose values are what was asked for, not what was found."""


class Entry(NamedTuple):
    """An act without its value.

    Attributes:
        place: the row that it is about, from 1; 0 for a request or an act without a slot.
    """

    domain: str
    intent: str
    slot: str
    place: int

    @property
    def name(self) -> str:
        """``Hotel-Inform-Area-1``."""
        last = ASKED if self.intent == REQUEST else str(self.place or NONE)
        return f"{self.domain}-{self.intent}-{self.slot}-{last}"


def _entries(kinds: Kinds) -> Iterable[Entry]:
    for domain, intents in kinds.items():
        for intent, slots in intents.items():
            for slot, _, most in (slot.partition("*") for slot in slots.split()):
                counted = slot != NONE and intent != REQUEST
                places = range(1, int(most or 1) + 1) if counted else (0,)
                yield from (Entry(domain, intent, slot, place) for place in places)


SYSTEM_ENTRIES = tuple(_entries(_SYSTEM))
USER_ENTRIES = tuple(_entries(_USER))
SYSTEM_NAMES = tuple([entry.name for entry in SYSTEM_ENTRIES])  # of the 209 acts
USER_NAMES = tuple([entry.name for entry in USER_ENTRIES])  # of the 78


def _by_kind(entries: Sequence[Entry]) -> dict[tuple[str, str, str], tuple[int, ...]]:
    """Intent, domain and slot -> the numbers of the entries, by their place."""
    numbers: dict[tuple[str, str, str], tuple[int, ...]] = {}
    for number, (domain, intent, slot, _) in enumerate(entries):
        kind = (intent, domain, slot)
        numbers[kind] = (*numbers.get(kind, ()), number)
    return numbers


_SYSTEM_KINDS, _USER_KINDS = _by_kind(SYSTEM_ENTRIES), _by_kind(USER_ENTRIES)


@lru_cache(maxsize=1 << 14)
def system_numbers(acts: Acts) -> tuple[int, ...]:
    """Which of the 209 acts an utterance of the system has; others are left out."""
    return _numbers(acts, _SYSTEM_KINDS)


@lru_cache(maxsize=1 << 14)
def user_numbers(acts: Acts) -> tuple[int, ...]:
    """Which of the 78 acts an utterance of the user has; others are left out."""
    return _numbers(acts, _USER_KINDS)


def _numbers(acts: Acts, kinds: Mapping[tuple[str, str, str], tuple[int, ...]]) -> tuple[int, ...]:
    said: dict[tuple[str, str, str], int] = {}
    numbers: list[int] = []
    for intent, domain, slot, _ in acts:
        kind = (intent, domain, slot)
        place, known = said.get(kind, 0), kinds.get(kind, ())
        said[kind] = place + 1
        numbers += known[place : place + 1]
    return tuple(numbers)
