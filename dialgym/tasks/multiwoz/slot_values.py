"""The values that a slot is known to have: in the files, in goals, in rows."""

from collections.abc import Iterator

from dialgym.tasks.multiwoz.data import World

PLACES = ("attraction", "hotel", "restaurant", "police", "hospital")
"""Domains of the ends of a taxi ride."""


def slot_values(world: World, domain: str, slot: str) -> tuple[str, ...]:
    """All values of a slot of a domain, by the names of the database; those that are empty aside.

    In an order of their own, the same in all processes.
    """
    return tuple(dict.fromkeys(v for v in _values(world, domain, slot) if v not in ("", "?")))


def _values(world: World, domain: str, slot: str) -> Iterator[str]:
    yield from world.values.get(domain, {}).get(slot, ())
    model = world.goal_model.domains.get(domain)
    if model is not None:
        if slot in model.values:
            yield from model.values[slot].items
        yield from (v for booked, _, known in model.bookings if booked == slot for v in known.items)
    for row in world.database.rows(domain):
        if slot in row:
            yield row[slot]
    if domain == "taxi" and slot in ("departure", "destination"):
        for place in PLACES:
            yield from (row["name"] for row in world.database.rows(place) if "name" in row)
            yield f"the {place}"
