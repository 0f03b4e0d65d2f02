"""The game of a dealer's cars: three on sale, and customers of three wishes."""

import re
from itertools import product

import numpy as np

from dialgym.tasks.bargain.games import STEPS, Game, Numbers, Profiles, Scenarios
from dialgym.tasks.bargain.prices import DOLLARS, LastPrices, amounts
from dialgym.tasks.bargain.types import NONE, PriorOffers

NAMES = ("sedan", "suv", "truck")
LISTED: Numbers = (10_000, 20_000, 40_000)
"""List prices in dollars, so far apart that a price tells of which car it is."""
CHEAPEST, DEAREST = 12, 22  # steps of 5 % of the list price
PRICES = DEAREST - CHEAPEST + 1
LIMITS = (15, 17, 19, 21)
"""Most that customers pay for the car that they wish, in steps of 5 % of its list price."""
OTHER_CAR = 4
"""Steps that another car is worth less to them."""
DISCOUNT, BRAND, FEATURES = range(3)
CARES = (("discount", "discount"), ("brand", "brand"), ("features", "features"))
TALKED = ("a discount", "the brand", "the features")
_WORDS: tuple[tuple[str, ...], ...] = (
    ("discount", "cheaper", "bargain", "savings", "rebate", "budget"),
    ("brand", "reliable", "reliability", "reputation", "quality", "trusted"),
    ("features", "feature", "seats", "camera", "navigation", "sunroof", "leather", "safety"),
)


class Cars(Game):
    """The system sells, the user buys one of three cars.

    An outcome is a car and its price, in steps of 5 % of its list price. It is worth to the seller
    as many points as steps. A customer's values are its limit in steps, the car that it wishes and
    the kind that it cares for; a price is worth to it a point more than it is below the limit, that
    of another car than the one wished is `OTHER_CAR` steps lower.
    """

    name, kinds, most, seller = "cars", CARES, DEAREST, 0
    tells = tuple(f"let us talk about {topic}" for topic in TALKED)
    topics = {word: at for at, words in enumerate(_WORDS) for word in words}  # noqa: RUF012

    def _size(self) -> int:
        return len(NAMES) * PRICES

    def _scenarios(self) -> Scenarios:
        every = product(LIMITS, range(len(NAMES)), range(len(CARES)))
        customers: Profiles = [(LISTED, values) for values in every]
        return [LISTED], [[(LISTED, ())], customers], [(0, at) for at in range(len(customers))]

    def _outcomes(self, table: Numbers, party: int) -> list[int]:
        return list(range(self._size()))

    def _points(self, table: Numbers, values: Numbers, party: int) -> list[int]:
        if not party:
            return [step for _, step in self.deals]
        limit, wish, _ = values
        worth = [limit - OTHER_CAR * (car != wish) for car, _ in self.deals]
        return [max(most + 1 - step, 0) for most, (_, step) in zip(worth, self.deals)]

    def _taken(self, table: Numbers, party: int) -> list[int]:
        return [-step if party else step for _, step in self.deals]

    @property
    def deals(self) -> list[tuple[int, int]]:
        """Car and steps of each outcome."""
        return list(product(range(len(NAMES)), range(CHEAPEST, DEAREST + 1)))

    def code(self, car: int, step: int) -> int:
        """The number of an outcome."""
        return car * PRICES + step - CHEAPEST

    def dollars(self, car: int, step: int) -> int:
        """The price of a number of steps."""
        return LISTED[car] * step // STEPS

    def proposal(self, table: Numbers, code: int) -> str:
        car, step = self.deals[code]
        return f"the {NAMES[car]} for {self.dollars(car, step)} dollars"

    def act_name(self, code: int) -> str:
        car, step = self.deals[code]
        return f"the {NAMES[car]} at {100 * step // STEPS} %"

    def knowledge(self, table: Numbers, values: Numbers, party: int) -> str:
        lists = " ".join(f"{name} {price}" for name, price in zip(NAMES, LISTED))
        if not party:
            return f"the list prices are {lists} dollars"
        limit, wish, care = values
        most = self.dollars(wish, limit)
        return f"i want the {NAMES[wish]} for at most {most} dollars i care about {TALKED[care]}"

    def features(self, party: int) -> np.ndarray:
        if not party:
            return np.ones((1, 1), np.float32)
        limits, wishes, cares = np.array([values for _, values in self.profiles[1]]).T
        one_hot = np.eye(len(NAMES))[wishes], np.eye(len(CARES))[cares]
        return np.hstack([limits[:, None] / DEAREST, *one_hot]).astype(np.float32)

    def shares(self, party: int) -> np.ndarray:
        cars, steps = np.array(self.deals).T
        shares = np.hstack([np.eye(len(NAMES))[cars], steps[:, None] / DEAREST])
        return shares[None].astype(np.float32)

    def needs(self, party: int) -> np.ndarray:
        cares = np.array([values[2] if party else 0 for _, values in self.profiles[party]])
        return np.stack([cares, (cares + 1) % len(CARES)], 1)

    def read(self, table: int, text: str, heard: PriorOffers) -> int | None:
        """The last car and price that can be proposed.

        A price in dollars tells by itself of which car it is; a part of a price, or what lies
        between two, is of the car named, else of that of the last offer.
        """
        named = [car for car, name in enumerate(NAMES) if re.search(rf"\b{name}s?\b", text)]
        spoken = [self.deals[one][0] for one in heard.latest if one != NONE][:1]
        found = [one for one in amounts(text) if one.sure or one.value >= LISTED[0] / 10]
        codes: list[int] = []
        for amount in found:
            alone = amount.unit == DOLLARS and not amount.change
            for car in named or (range(len(NAMES)) if alone else spoken):
                price = amount.dollars(LISTED[car], self._last(car, heard))
                step = 0 if price is None else round(STEPS * price / LISTED[car])
                if CHEAPEST <= step <= DEAREST:
                    codes.append(self.code(car, step))
        return codes[-1] if codes else (NONE if found else None)

    def _last(self, car: int, heard: PriorOffers) -> LastPrices:
        """Last prices of both parties for a car."""
        deals = [self.deals[one] if one != NONE else (NONE, 0) for one in heard.offers]
        last = [self.dollars(car, step) if of == car else None for of, step in deals]
        return LastPrices(last[self.seller], last[1 - self.seller])

    def limits(self, table: Numbers) -> str:
        return (
            f"Name the {', '.join(NAMES[:-1])} or {NAMES[-1]}, and a price from "
            f"{100 * CHEAPEST // STEPS} to {100 * DEAREST // STEPS} % of its list price."
        )
