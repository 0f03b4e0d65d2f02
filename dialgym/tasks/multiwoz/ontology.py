"""The seven domains: their slots, and the names that acts and the database have for them."""

from collections.abc import Mapping
from types import MappingProxyType

DOMAINS = ("attraction", "hospital", "hotel", "police", "restaurant", "taxi", "train")
"""By the names of goals and beliefs; acts write them with a capital (`act_domain`)."""
BOOKING, GENERAL = "Booking", "general"
"""The domains of acts that are about no one of the seven."""

INFORMABLE: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "attraction": ("type", "name", "area"),
        "hospital": ("department",),
        "hotel": ("name", "area", "parking", "pricerange", "stars", "internet", "type"),
        "police": (),
        "restaurant": ("food", "pricerange", "name", "area"),
        "taxi": ("leaveAt", "destination", "departure", "arriveBy"),
        "train": ("leaveAt", "destination", "day", "arriveBy", "departure"),
    }
)
"""Slots that a user can constrain: 24 in all."""
BOOKABLE: Mapping[str, tuple[str, ...]] = MappingProxyType(
    dict.fromkeys(DOMAINS, ())
    | {"hotel": ("people", "day", "stay"), "restaurant": ("people", "day", "time")}
    | {"train": ("people",)}
)
"""Slots of a booking."""
REQUESTABLE: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "attraction": ("entrance fee", "type", "address", "postcode", "phone", "area", "name"),
        "hospital": ("address", "phone", "postcode"),
        "hotel": (
            *("address", "postcode", "internet", "phone", "parking", "type", "pricerange"),
            *("stars", "area", "name", "Ref"),
        ),
        "police": ("postcode", "address", "phone", "name"),
        "restaurant": (
            *("phone", "postcode", "address", "pricerange", "food", "area", "name", "Ref"),
        ),
        "taxi": ("car type", "phone"),
        "train": ("arriveBy", "duration", "price", "trainID", "leaveAt", "Ref"),
    }
)
"""Slots that a user can ask for."""

_PLACE = {"Addr": "address", "Phone": "phone", "Post": "postcode"}
_FOUND = {"Area": "area", "Choice": "choice", "Name": "name", "Price": "pricerange"}
SLOT_NAMES: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "Attraction": {**_PLACE, **_FOUND, "Fee": "entrance fee", "Type": "type"},
        "Hospital": {**_PLACE, "Department": "department"},
        "Hotel": {
            **_PLACE,
            **_FOUND,
            "Internet": "internet",
            "Parking": "parking",
            "Ref": "Ref",
            "Stars": "stars",
            "Type": "type",
            "Day": "day",
            "People": "people",
            "Stay": "stay",
        },
        "Police": {**_PLACE, "Name": "name"},
        "Restaurant": {
            **_PLACE,
            **_FOUND,
            "Food": "food",
            "Ref": "Ref",
            "Day": "day",
            "People": "people",
            "Time": "time",
        },
        "Taxi": {
            "Arrive": "arriveBy",
            "Car": "car type",
            "Depart": "departure",
            "Dest": "destination",
            "Leave": "leaveAt",
            "Phone": "phone",
        },
        "Train": {
            "Arrive": "arriveBy",
            "Choice": "choice",
            "Day": "day",
            "Depart": "departure",
            "Dest": "destination",
            "Id": "trainID",
            "Leave": "leaveAt",
            "People": "people",
            "Ref": "Ref",
            "Ticket": "price",
            "Time": "duration",
        },
        BOOKING: {
            "Day": "day",
            "Name": "name",
            "People": "people",
            "Ref": "Ref",
            "Stay": "stay",
            "Time": "time",
        },
    }
)
"""By domain of acts: the short name of a slot in acts -> its name in goals, beliefs and rows."""
SHORT_NAMES: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {d.lower(): {name: short for short, name in slots.items()} for d, slots in SLOT_NAMES.items()}
)
"""By domain: the name of a slot -> its short name in acts."""
UNCONSTRAINED = frozenset(
    ("", "dontcare", "dont care", "don't care", "do n't care", "not mentioned")
)
"""The values that leave a slot open."""
DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
AREAS = ("centre", "east", "north", "south", "west")


def act_domain(domain: str) -> str:
    """The name that acts have for a domain: ``Hotel`` for ``hotel``."""
    return domain.capitalize()
