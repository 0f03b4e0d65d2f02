"""Frequencies of domains, slots and values in goals."""

import json
import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import accumulate
from numbers import Real
from types import MappingProxyType
from typing import Any, NamedTuple

from dialgym.errors import did_you_mean
from dialgym.tasks.multiwoz.database import ANY, CityDatabase
from dialgym.tasks.multiwoz.ontology import BOOKABLE, DAYS, DOMAINS, INFORMABLE, REQUESTABLE

TIMES = ("arriveBy", "leaveAt")
"""The slots of trains and taxis of which a goal has exactly one."""
ENDS = ("departure", "destination")
"""Slots of the ends of a journey by train or taxi."""


class Weighted(NamedTuple):
    """Choices and how often each is made."""

    items: tuple[Any, ...]
    below: tuple[float, ...]  # the weights, cumulated

    def pick(self, u: float) -> Any:
        """The choice of a uniform number."""
        below = self.below
        return self.items[bisect_right(below, u * below[-1], 0, len(below) - 1)]

    @property
    def shares(self) -> dict[Any, float]:
        """Frequencies of the choices, summing to 1."""
        total = self.below[-1]
        return {i: (b - a) / total for i, a, b in zip(self.items, (0.0, *self.below), self.below)}


def weighted(weights: Iterable[tuple[Any, float]]) -> Weighted:
    """Choices of these weights."""
    items, each = zip(*weights)
    return Weighted(items, tuple(accumulate(map(float, each))))


@dataclass(frozen=True, slots=True)
class DomainModel:
    """Frequencies of the constraints and requests of one domain.

    Attributes:
        combinations: sets of slots to constrain; None where nothing can be constrained.
        values: slot -> values.
        probability: slot -> how often it is constrained.
        requests: slots to ask for, each with its probability.
        booking: the probability of a booking.
        bookings: slots to book by: name, probability and values.
    """

    combinations: Weighted | None
    values: Mapping[str, Weighted]
    probability: Mapping[str, float]
    requests: tuple[tuple[str, float], ...]
    booking: float
    bookings: tuple[tuple[str, float, Weighted], ...]

    def share(self, slot: str, other: str) -> float:
        """Share in which the first of two slots is constrained, rather than the other."""
        chance = self.probability[slot]
        return chance / (chance + self.probability[other])


@dataclass(frozen=True)
class GoalModel:
    """The distribution of goals.

    Attributes:
        orderings: tuples of domains, in the order in which they are asked for.
        domains: by name.
        content: of the file.
    """

    orderings: Weighted
    domains: Mapping[str, DomainModel]
    content: Mapping[str, Any]

    def __reduce__(self) -> tuple[Any, ...]:
        return parse_goal_model, (self.content,)


def parse_goal_model(content: Any, file: str = "goal_model.json") -> GoalModel:
    """The goal model of what ConvLab-2 counts in a corpus.

    Its parts are ``slot_probability``, ``value_distribution``, ``domain_ordering``,
    ``booking_probability`` and ``slot_combination``, as JSON: a list of ``{"of": ..., "weight":
    ...}`` where a key is no text. Others, such as ``slot_count``, are not used.

    Raises:
        ValueError: a part is missing or malformed, or names no domain or slot.
    """
    model = _Part(content, (file,))
    orderings = model.get("domain_ordering").combinations(DOMAINS)
    named = sorted({domain for ordering in orderings.items for domain in ordering})
    domains = {domain: _domain_model(model, domain) for domain in named}
    return GoalModel(orderings, MappingProxyType(domains), content)


def _domain_model(model: "_Part", domain: str) -> DomainModel:
    chances = model.get("slot_probability").get(domain)
    values = model.get("value_distribution").get(domain)
    info = chances.get("info", {}).chances(INFORMABLE[domain])
    books = chances.get("book", {}).chances(BOOKABLE[domain])
    if books:
        _check_bookings(chances.get("book"), values.get("book"), domain)
    known = {slot: values.get("info").get(slot).choices() for slot in info}
    booking = model.get("booking_probability").chances(DOMAINS).get(domain, 0.0)
    combinations = None
    if info:
        combinations = model.get("slot_combination").get(domain).get("info").combinations(info)
    if domain in ("taxi", "train"):
        _check_choices(chances.get("info"))
    return DomainModel(
        combinations,
        MappingProxyType(known),
        MappingProxyType(info),
        tuple(chances.get("reqt", {}).chances(REQUESTABLE[domain]).items()),
        booking if books else 0.0,
        tuple((s, chance, values.get("book").get(s).choices()) for s, chance in books.items()),
    )


def _check_choices(chances: "_Part") -> None:
    """Raise a ValueError unless it can be said which of two times, and of two ends, is known."""
    for pair in (TIMES, ENDS):
        if not sum(chances.get(slot).content for slot in pair):
            raise chances.bad(f"a probability of {pair[0]!r} or {pair[1]!r}", "0 for both")


def _check_bookings(chances: "_Part", values: "_Part", domain: str) -> None:
    """Raise a ValueError unless a booking can say all that it must, in days and numbers."""
    for slot in BOOKABLE[domain]:
        chances.get(slot)
        values.get(slot)
    if domain != "train":
        values.get("day").check_names(values.get("day").table(), DAYS)
    if domain == "hotel":
        for nights in values.get("stay").table():
            if not str(nights).isdecimal():
                raise values.get("stay").bad("numbers of nights", repr(nights))


class _Part:
    """A part of the file, which knows where it stands."""

    def __init__(self, content: Any, path: tuple[str, ...]) -> None:
        self.content, self.path = content, path

    def get(self, key: str, default: Any = None) -> "_Part":
        """The part of that name."""
        table = self.table()
        if key not in table and default is None:
            hint = did_you_mean(key, table)
            raise self.bad(f"a part {key!r}", (", ".join(table) or "none") + "." + hint)
        return _Part(table.get(key, default), (*self.path, key))

    def table(self) -> Mapping[str, Any]:
        """The content as an object with names."""
        if not isinstance(self.content, Mapping):
            raise self.bad("an object with names", repr(self.content)[:60])
        return self.content

    def chances(self, known: Iterable[str]) -> dict[str, float]:
        """The content as names that are known, each with a probability."""
        table = self.table()
        self.check_names(table, known)
        for name, chance in table.items():
            if not _is_number(chance) or not 0 <= chance <= 1:
                raise self.bad(f"a probability of {name!r}", repr(chance)[:60])
        return dict(table)

    def choices(self) -> Weighted:
        """The content as values, each with a weight."""
        return self._weighted([(value, weight) for value, weight in self.table().items()])

    def combinations(self, known: Iterable[str]) -> Weighted:
        """The content as lists of names that are known, each with a weight; empty ones left out.

        They would be redrawn.
        """
        if not isinstance(self.content, list):
            raise self.bad("a list of objects with 'of' and 'weight'", repr(self.content)[:60])
        found = []
        for row in self.content:
            if not isinstance(row, Mapping) or not isinstance(row.get("of"), list):
                raise self.bad("objects with a list 'of' and a 'weight'", repr(row)[:60])
            self.check_names(row["of"], known)
            if len(set(row["of"])) != len(row["of"]):
                raise self.bad("each name once in a list", repr(row["of"]))
            found.append((tuple(row["of"]), row.get("weight")))
        return self._weighted([(of, weight) for of, weight in found if of])

    def check_names(self, names: Iterable[Any], known: Iterable[str]) -> None:
        """Raise a ValueError unless all names are known."""
        allowed = list(known)
        for name in names:
            if name not in allowed:
                hint = did_you_mean(name, allowed)
                raise self.bad(f"some of {', '.join(allowed) or 'nothing'}", f"{name!r}.{hint}")

    def _weighted(self, weights: list[tuple[Any, Any]]) -> Weighted:
        for of, weight in weights:
            if not _is_number(weight) or weight < 0:
                raise self.bad(f"a weight of {of!r}, 0 or more", repr(weight)[:60])
        wanted = [(of, weight) for of, weight in weights if weight > 0]
        if not wanted:
            raise self.bad("an entry with a weight", "none")
        return weighted(wanted)

    def bad(self, expected: str, got: str) -> ValueError:
        """Faults of this part."""
        file, *path = self.path
        place = f", {' > '.join(path)}" if path else ""
        got = got.rstrip(".")
        return ValueError(
            f"goal model {file}{place}: expected {expected}; got {got}. Mend the file."
        )


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)


def suited(model: GoalModel, database: CityDatabase) -> GoalModel:
    """The goal model with the values of a database, each as frequent as in its rows.

    For a database that comes without a goal model. Taxis go between all places that have names,
    times stay as they are, and nobody asks for what no row says, nor for a domain without rows.
    """
    content = json.loads(json.dumps(model.content))
    empty = {domain for domain in {*DOMAINS} - {"taxi"} if not database.rows(domain)}
    orderings = [row for row in content["domain_ordering"] if not empty & {*row["of"]}]
    content["domain_ordering"] = orderings or content["domain_ordering"]
    values, chances = content["value_distribution"], content["slot_probability"]
    for domain in sorted({*values} - {"taxi"}):
        rows = database.rows(domain)
        said = {slot for row in rows for slot in row}
        asked = chances[domain].get("reqt", {})
        chances[domain]["reqt"] = {slot: chance for slot, chance in asked.items() if slot in said}
        for slot in sorted({*values[domain].get("info", ())} - {*TIMES}):
            counts = Counter(row[slot] for row in rows if row.get(slot, ANY) != ANY)
            values[domain]["info"][slot] = dict(counts) or values[domain]["info"][slot]
    places = [r["name"] for d in ("attraction", "hotel", "restaurant") for r in database.rows(d)]
    if places:
        values["taxi"]["info"] |= {end: dict.fromkeys(places, 1) for end in ENDS}
    return parse_goal_model(content)
