"""Matching of told values with the database."""

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from types import MappingProxyType

from dialgym.tasks.multiwoz.data import World
from dialgym.tasks.multiwoz.database import ANY, Row, clock
from dialgym.tasks.multiwoz.ontology import (
    AREAS,
    DAYS,
    DOMAINS,
    INFORMABLE,
    REQUESTABLE,
    SLOT_NAMES,
    UNCONSTRAINED,
)
from dialgym.tasks.multiwoz.values import partial_ratio

TABLED = ("attraction", "hotel", "restaurant", "train")
"""The domains whose rows are looked for by all that is said."""
UNKNOWN = "unknown"
"""Text of a cell that the database does not know."""
ALIKE = 60
"""Least similarity of answer and cell in per cent, under the fault ``fuzzy_answers``."""

TOLD: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        domain: {
            short: slot
            for short, slot in SLOT_NAMES[domain.capitalize()].items()
            if slot in REQUESTABLE[domain] + (INFORMABLE[domain] if domain != "taxi" else ())
        }
        for domain in DOMAINS
    }
)
"""By domain: the short names of the slots whose values count as told -> their names."""


def meets(cells: Row, slot: str, value: str) -> bool:
    """Return True if a row meets a constraint, as ConvLab-2 takes it: by the same letters.

    What is no time constrains nothing.
    """
    cell = cells.get(slot, "")
    if slot in ("leaveAt", "arriveBy"):
        limit, time = clock(value), clock(cell)
        if limit is None or time is None:
            return True
        return time >= limit if slot == "leaveAt" else time <= limit
    return value.strip() == cell.strip()


def alike(cells: Row, slot: str, answer: str) -> bool:
    """Return True if an answer is more or less what a row has, as ConvLab-2 takes it."""
    cell = cells.get(slot)
    if cell is None or answer in UNCONSTRAINED:
        return True
    if slot in ("leaveAt", "arriveBy"):
        return meets(cells, slot, answer)
    if cell.strip() == ANY:
        return True
    return partial_ratio(answer.strip().lower(), cell.strip().lower()) >= ALIKE


def equal(cells: Row, slot: str, answer: str) -> bool:
    """Return True if an answer is what a row has."""
    cell = cells.get(slot, ANY).strip().lower()
    return answer.strip().lower() == (UNKNOWN if cell == ANY else cell)


_TIME = re.compile(r"(?:[01]\d|2[0-4]):[0-5]\d").fullmatch
_FORMS: Mapping[str, Callable[[str], object]] = MappingProxyType(
    {
        "area": lambda value: value.lower() in AREAS,
        "arriveBy": _TIME,
        "leaveAt": _TIME,
        "day": lambda value: value.lower() in DAYS,
        "duration": lambda value: "minute" in value,
        "internet": lambda value: value in ("yes", "no", "none"),
        "parking": lambda value: value in ("yes", "no", "none"),
        "phone": re.compile(r"\d{11}\n?").fullmatch,
        "price": lambda value: "pound" in value,
        "pricerange": lambda value: value in ("cheap", "expensive", "moderate", "free"),
        "postcode": re.compile(r"cb\d{1,3}[a-z]{2,3}|pe296fl").fullmatch,
        "stars": re.compile(r"\d").fullmatch,
        "trainID": lambda value: re.fullmatch(r"tr\d{4}", value.lower()),
    }
)


@lru_cache(maxsize=1 << 14)
def well_formed(domain: str, slot: str, value: str) -> bool:
    """Return True if a value has the form of its slot, whatever it says."""
    if (domain, slot) == ("restaurant", "phone"):
        return True
    test = _FORMS.get(slot)
    return test is None or bool(test(value))


def value_of(world: World) -> Callable[[str, str, str], bool]:
    """Return True if some row has a value; ``unknown`` where one has none; ``none`` for a yes."""
    cells: dict[tuple[str, str], set[str]] = {}
    for domain in (*TABLED, "hospital", "police"):
        rows = world.database.rows(domain)
        for slot in TOLD[domain].values():
            values = {row.get(slot, ANY).strip().lower() for row in rows}
            if ANY in values:
                values.add(UNKNOWN)
            if slot in ("internet", "parking"):
                values.add("none")
            cells[domain, slot] = values - {ANY}
    cells["taxi", "car type"] = {kind.lower() for kind in world.database.taxis.types}

    def right(domain: str, slot: str, value: str) -> bool:
        known = cells.get((domain, slot))
        return well_formed(domain, slot, value) if known is None else value.strip().lower() in known

    return right
