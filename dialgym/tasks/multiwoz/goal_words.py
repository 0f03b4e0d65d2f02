"""Goals of MultiWOZ in English, whatever the user speaks: wishes, fallbacks, bookings, requests."""

from collections.abc import Mapping

from dialgym.tasks.briefs import listed
from dialgym.tasks.multiwoz.agenda import DONTCARE
from dialgym.tasks.multiwoz.types import Constraints, DomainGoal, MultiWOZGoal

THINGS: Mapping[str, str] = {
    "attraction": "an attraction",
    "hospital": "a hospital",
    "hotel": "a place to stay",
    "police": "the police",
    "restaurant": "a restaurant",
    "taxi": "a taxi",
    "train": "a train",
}
LABELS: Mapping[str, str] = {
    "Ref": "reference number",
    "arriveBy": "arrival by",
    "leaveAt": "departure at",
    "pricerange": "price range",
    "trainID": "train number",
    "departure": "departure from",
    "destination": "destination",
}
"""Slots that are called by another name than their own."""
BOOKED: Mapping[str, str] = {
    "people": "for {} people",
    "day": "on {}",
    "time": "at {}",
    "stay": "for {} nights",
}
"""Parts of a booking, in the order in which they are said."""
SINGLE = {"for 1 people": "for 1 person", "for 1 nights": "for 1 night"}


def goal_words(goal: MultiWOZGoal) -> str:
    """A goal in sentences, a line for each domain in the order in which the user asks."""
    return "\n".join(_wishes(domain, wanted) for domain, wanted in goal.domains.items())


def _wishes(domain: str, wanted: DomainGoal) -> str:
    asked = [_label(slot) for slot in wanted.requests]
    sentences = [
        f"You look for {THINGS[domain]}{_search(wanted)}.",
        f"Book it {_bookings(wanted)}." if wanted.book else "",
        f"Ask for its {listed(asked)}." if asked else "",
    ]
    return " ".join(filter(None, sentences))


def _search(wanted: DomainGoal) -> str:
    """Constraints, those that no row meets first, and what the user then changes."""
    first = wanted.fail_info or wanted.info
    if not first:
        return ""
    changed = _changes(wanted.fail_info, wanted.info)
    then = f"; if there is none, change that to {_values(changed)}" if changed else ""
    return f": {_values(first)}{then}"


def _bookings(wanted: DomainGoal) -> str:
    """The booking, one that fails first, and what the user then changes."""
    changed = _changes(wanted.fail_book, wanted.book)
    then = f"; if that cannot be, {_booking(changed)} instead" if changed else ""
    return _booking(wanted.fail_book or wanted.book) + then


def _changes(first: Constraints, then: Constraints) -> Constraints:
    """Constraints of a search or booking that fails that become others, as they become."""
    if not first:
        return {}
    added = {slot: value for slot, value in then.items() if slot not in first}
    moved = {slot: then.get(slot, DONTCARE) for slot, v in first.items() if then.get(slot) != v}
    return moved | added


def _values(constraints: Constraints) -> str:
    return listed([_value(slot, value) for slot, value in constraints.items()])


def _value(slot: str, value: str) -> str:
    return f"any {_label(slot)}" if value == DONTCARE else f"{_label(slot)} {value}"


def _label(slot: str) -> str:
    return LABELS.get(slot, slot)


def _booking(book: Constraints) -> str:
    parts = [form.format(book[slot]) for slot, form in BOOKED.items() if slot in book]
    return " ".join(SINGLE.get(part, part) for part in parts)
