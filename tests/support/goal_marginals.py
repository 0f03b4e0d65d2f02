"""Comparison of two samples of goals, in ConvLab's form, marginal by marginal."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from math import sqrt
from typing import Any

GoalJSON = Mapping[str, Any]
DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
PLACES = ("attraction", "hotel", "restaurant", "police", "hospital")


def features(goal: GoalJSON) -> Iterator[tuple[str, Any]]:
    """All that a goal says, as pairs of a marginal's name and a category."""
    order = goal["domain_ordering"]
    yield "ordering", tuple(order)
    for domain in order:
        for name, category in _of_domain(goal[domain]):
            yield f"{domain} {name}", category
    yield from _couplings(goal, order)


def _of_domain(goal: GoalJSON) -> Iterator[tuple[str, Any]]:
    info, fail, book = goal["info"], goal.get("fail_info", {}), goal.get("book", {})
    asked = set(goal.get("reqt", ()))
    yield "constrained", tuple(sorted(info))
    yield "fails", bool(fail)
    yield "books", tuple(book)  # in the order in which they are said
    yield "requests", tuple(sorted(asked))
    yield "number of requests", len(asked)
    yield "books or asks", (bool(book), bool(asked), bool(fail))
    for slot, value in info.items():
        yield f"{'mended' if fail else 'met'} {slot}", value
    for slot, value in fail.items():
        yield f"failed {slot}", value
    if fail:
        yield "mended", tuple(sorted(s for s in fail if fail[s] != info[s]))
    for slot, value in book.items():
        yield f"booked {slot}", value


def _couplings(goal: GoalJSON, order: list[str]) -> Iterator[tuple[str, Any]]:
    hotel, restaurant, train = (goal.get(d, {}) for d in ("hotel", "restaurant", "train"))
    if "taxi" in order:
        places = [d for d in order[: order.index("taxi")] if d in PLACES]
        taxi, booked = goal["taxi"]["info"], restaurant.get("book", {}).get("time")
        last = bool(places) and places[-1] == "restaurant" and bool(booked)
        yield "taxi after places", (len(places), last, tuple(sorted(taxi)))
        yield "taxi at the table's time", (last, taxi.get("arriveBy") == booked)
    if "attraction" in order and restaurant and "fail_info" not in restaurant:
        areas = restaurant["info"].get("area"), goal["attraction"]["info"].get("area")
        if None not in areas and order.index("restaurant") > order.index("attraction"):
            yield "restaurant in the attraction's area", areas[0] == areas[1]
    if "book" in hotel and "book" in restaurant:
        pairs = [(hotel["book"][s], restaurant["book"][s]) for s in ("people", "day")]
        yield "table of the hotel's guests", tuple(a == b for a, b in pairs)
    if "book" in hotel and train:
        nights = (DAYS.index(train["info"]["day"]) - DAYS.index(hotel["book"]["day"])) % 7
        arrives = train["info"]["destination"] == "cambridge"
        yield "train on the hotel's days", (arrives, nights, hotel["book"]["stay"])
    if train:
        yield "train's way", (train["info"]["departure"], train["info"]["destination"])


Counts = Mapping[str, Counter[Any]]
"""By marginal: how many goals there are of each category."""


def counted(goals: Iterable[GoalJSON]) -> Counts:
    counts: dict[str, Counter[Any]] = defaultdict(Counter)
    for goal in goals:
        for name, category in features(goal):
            counts[name][category] += 1
    return counts


def distances(one: Counts, other: Counts) -> dict[str, float]:
    """By marginal: how unlikely so great a difference is, in standard deviations.

    That is a chi-square statistic of two samples, by the approximation of Wilson and Hilferty;
    categories of fewer than 10 goals are pooled. Marginals of one category have none.
    """
    empty: Counter[Any] = Counter()
    names = one.keys() | other.keys()
    found = {name: _distance(one.get(name, empty), other.get(name, empty)) for name in names}
    return {name: z for name, z in sorted(found.items()) if z is not None}


def _distance(one: Counter[Any], other: Counter[Any]) -> float | None:
    if not one or not other:
        return 100.0 if max(one.total(), other.total()) > 30 else None
    share = one.total() / (one.total() + other.total())
    pooled: dict[Any, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for category in one.keys() | other.keys():
        total = one[category] + other[category]
        rare = total * min(share, 1 - share) < 5
        pair = pooled["rare" if rare else (category,)]
        pair[0] += one[category]
        pair[1] += other[category]
    cells = list(pooled.values())
    if len(cells) < 2:
        return None
    statistic = 0.0
    for a, b in cells:
        for seen, expected in ((a, (a + b) * share), (b, (a + b) * (1 - share))):
            statistic += (seen - expected) ** 2 / expected
    k = len(cells) - 1
    return ((statistic / k) ** (1 / 3) - (1 - 2 / (9 * k))) / sqrt(2 / (9 * k))
