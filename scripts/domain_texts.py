"""Invented names, addresses and figures for `build_domains.py`."""

from bisect import bisect
from collections.abc import Callable, Container, Mapping, Sequence
from math import exp
from random import Random
from typing import TypeVar

T = TypeVar("T")
Row = Mapping[str, str]


class Draw:
    """Draws from the one stream of a generator that Python promises to keep: ``random()``."""

    def __init__(self, rng: Random) -> None:
        self.random = rng.random

    def below(self, high: int) -> int:
        return int(self.random() * high)

    def between(self, low: int, high: int) -> int:
        return low + self.below(high - low + 1)

    def chance(self, probability: float) -> bool:
        return self.random() < probability

    def lognormal(self, spread: float) -> float:
        """Nearly: the exponential of a sum of three uniform numbers."""
        return exp(spread * 2 * (self.random() + self.random() + self.random() - 1.5))

    def one(self, items: Sequence[T], cumulative: Sequence[float] | None = None) -> T:
        if cumulative is None:
            return items[self.below(len(items))]
        return items[min(bisect(cumulative, self.random() * cumulative[-1]), len(items) - 1)]

    def until_new(self, make: Callable[[], str], known: Container[str]) -> str:
        while (text := make()) in known:
            pass
        return text

    def distinct(self, make: Callable[["Draw"], str], size: int) -> list[str]:
        found: dict[str, None] = {}
        while len(found) < size:
            found.setdefault(make(self))
        return list(found)


HEADS = ("al", "bel", "cor", "dov", "el", "fen", "gal", "hol", "il", "jor", "kel", "lun", "mar",
         "nor", "ol", "pel", "quil", "ros", "sel", "tor", "ul", "ves", "wil", "yar",
         "zan")  # fmt: skip
MIDDLES = ("a", "da", "e", "i", "lo", "ma", "na", "o", "ra", "ri", "ta", "vi")
TAILS = ("bel", "dine", "do", "lan", "len", "lin", "mere", "nia", "ra", "ren", "rin", "sa",
         "ster", "ta", "vane", "wick")  # fmt: skip
PLACES = ("bank", "bridge", "corner", "cross", "gardens", "gate", "green", "heights", "hill",
          "market", "park", "quarter", "rise", "row", "side", "square", "view", "yard")  # fmt: skip
ROADS = ("road", "street", "lane", "avenue", "walk", "place")
EATERIES = ("kitchen", "table", "house", "garden", "room", "grill", "corner", "terrace")
THINGS = (
    "lantern",
    "anchor",
    "barrel",
    "heron",
    "orchard",
    "compass",
    "saddle",
    "willow",
    "kettle",
)
COLOURS = ("amber", "blue", "copper", "crimson", "ivory", "jade", "old", "silver", "tall", "white")
DISHES = ("soup", "stew", "pie", "salad", "platter", "roast", "curry", "rice", "noodles", "tart")


def word(draw: Draw) -> str:
    """A word of two or three syllables that no language has on purpose."""
    middle = draw.one(MIDDLES) if draw.chance(0.6) else ""
    return draw.one(HEADS) + middle + draw.one(TAILS)


def district(draw: Draw) -> str:
    return f"{word(draw)} {draw.one(PLACES)}" if draw.chance(0.7) else word(draw)


def bill(draw: Draw) -> str:
    low = draw.between(5, 60)
    return f"between {low} and {low + draw.between(5, 40)} crowns"


def restaurant(draw: Draw, _: str) -> str:
    kinds = (
        lambda: f"{word(draw)} {draw.one(EATERIES)}",
        lambda: f"the {draw.one(COLOURS)} {word(draw)}",
        lambda: f"the {word(draw)} {draw.one(THINGS)}",
        lambda: f"cafe {word(draw)}",
        lambda: word(draw),
    )
    return draw.one(kinds)()


def product(draw: Draw, family: str) -> str:
    letters = "abcdefghjklmnprstuvwxyz"
    model = f"{draw.one(letters)}{draw.between(1, 9) * 10}"
    return f"{family} {model}-{draw.one(letters)}-{draw.between(10, 99)}{draw.one(letters)}"


def street(draw: Draw, _: Row) -> str:
    return f"{draw.between(1, 199)} {word(draw)} {draw.one(ROADS)}"


def postcode(draw: Draw, _: Row) -> str:
    return f"zz{draw.between(1, 9)} {draw.between(1, 9)}{draw.one('abcdefgh')}{draw.one('xyz')}"


def about(draw: Draw, row: Row) -> str:
    return f"{row['food']} cooking in the {row['area']} of town since {draw.between(1950, 2015)}"


def named(before: str, *kinds: str) -> Callable[[Draw, str], str]:
    """Names of a word and one of some kinds."""
    return lambda draw, _: f"{before}{word(draw)} {draw.one(kinds)}"


def money(cheap: int, dear: int) -> Callable[[Draw, Row], str]:
    """Prices that follow the row's price range."""
    step = {"free": 0.0, "cheap": 0.0, "budget": 0.0, "moderate": 0.33, "expensive": 0.66}

    def price(draw: Draw, row: Row) -> str:
        part = (step.get(row["pricerange"], 0.5) + draw.random() / 3) * (dear - cheap)
        return f"{cheap + int(part)} crowns"

    return price


def choice(*texts: str) -> Callable[[Draw, Row], str]:
    return lambda draw, _: draw.one(texts)


def measure(low: float, high: float, unit: str) -> Callable[[Draw, Row], str]:
    return lambda draw, _: f"{low + (high - low) * draw.random():.1f} {unit}"


def size(draw: Draw, _: Row) -> str:
    sides = (draw.between(280, 420), draw.between(190, 290), draw.between(15, 40))
    return " x ".join(map(str, sides)) + " mm"


VALUES: Mapping[str, Callable[[Draw], str]] = {"district": district, "bill": bill}
NAMES: Mapping[str, Callable[[Draw, str], str]] = {
    "restaurant": restaurant,
    "hotel": named("", "house", "lodge", "inn", "hotel", "guest rooms", "court"),
    "attraction": named("the ", "rooms", "collection", "hall", "grounds", "centre"),
    "shop": named("", "and sons", "stores", "trading", "arcade", "of the square"),
    "station": named("", "terminus", "junction", "halt", "field"),
    "product": product,
}
DETAILS: Mapping[str, Callable[[Draw, Row], str]] = {
    "phone": lambda draw, _: f"0555 {draw.between(100000, 999999)}",
    "street": street,
    "postcode": postcode,
    "dish": lambda draw, row: f"{row['food']} {draw.one(DISHES)} {word(draw)}",
    "about": about,
    "cost": money(199, 1999),
    "room": money(40, 250),
    "ticket": money(0, 30),
    "open": lambda draw, _: f"daily from {draw.between(7, 11)} a.m. to {draw.between(4, 10)} p.m.",
    "flag": choice("0", "1"),
    "processor": lambda draw, row: f"{row['processorclass']}-{draw.between(100, 999)}",
    "drive": choice("128 gb", "256 gb", "320 gb", "500 gb", "750 gb", "1 tb"),
    "graphics": choice("built in", "basalt r5", "basalt r7", "quarz g2"),
    "display": choice("13 inch matt", "14 inch glossy", "15 inch matt", "17 inch matt", "touch"),
    "design": choice("black with a fine grid", "brushed silver", "matt white", "dark blue"),
    "hours": measure(3, 14, "hours"),
    "weight": measure(1, 3, "kg"),
    "size": size,
    "screen": choice("24 inches", "32 inches", "40 inches", "48 inches", "55 inches"),
    "resolution": choice("1366 x 768", "1920 x 1080", "3840 x 2160"),
    "power": measure(20, 160, "watts"),
}
