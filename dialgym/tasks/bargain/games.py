"""The three games: what is on the table, what it is worth to each party, and how it is said."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import permutations, product
from types import MappingProxyType

import numpy as np

from dialgym.tasks.bargain.division import share_of
from dialgym.tasks.bargain.prices import LastPrices, amounts
from dialgym.tasks.bargain.types import NONE, PriorOffers

Numbers = tuple[int, ...]
Profiles = list[tuple[Numbers, Numbers]]
Scenarios = tuple[list[Numbers], list[Profiles], list[tuple[int, int]]]
ITEMS = (("book", "books"), ("hat", "hats"), ("ball", "balls"))
GOODS = (("food", "food"), ("water", "water"), ("firewood", "firewood"))
MOST = 4  # of one kind of item
STEPS = 20  # of the list price: a price is a multiple of 5 % of it
CHEAPEST, DEAREST = 8, 22  # steps
LISTS = tuple(range(100, 1001, 100))


class Game(ABC):
    """A game of G outcomes, and what they are worth by profile.

    A profile is a table (what both see) with the values of one party. Proposals are numbered by
    what the party itself gets.

    Attributes:
        kinds: of what is divided, singular and plural.
        tells: the text that tells a need of each kind.
        tables: (C) what can be on the table.
        profiles: by party, (table, values) of each of its P profiles.
        rows: by party, the row of each profile.
        scenarios: (S, 2) rows of the profiles of system and user that can meet.
        points: by party, (P, G) int64 points of each outcome; 0 where it is impossible.
        outcome: by party, (C, G) int64 the outcome of each of its proposals; NONE if impossible.
        table_of: by party, (P,) int64 the table of a profile.
        possible: (C, G) bool the outcomes that a table has.
        takes: by party, (C, G) int64 how much of the table it takes by each outcome.
        best: by party, (P,) the most points that it can have.
        needs_of: by party, (P, 2) the kinds that it needs most, and least.
        proposals: by party, (P, most + 1) the outcome that it proposes to have so many points.
        most: points that no outcome exceeds.
        apart: points of each party without a deal.
        topics: words beside those of kinds that speak of one, each with its kind.
        seller: the index of the party that sells, in games of prices.
    """

    name: str
    kinds: Sequence[tuple[str, str]]
    tells: Sequence[str]
    most: int
    apart: int = 0
    topics: Mapping[str, int] = MappingProxyType({})
    seller: int = 1

    def __init__(self) -> None:
        self.tables, self.profiles, pairs = self._scenarios()
        self.scenarios = np.array(pairs, np.int64)
        self.rows = [{profile: at for at, profile in enumerate(k)} for k in self.profiles]
        self.size = self._size()
        at = {table: place for place, table in enumerate(self.tables)}
        self.outcome = [
            np.array([self._outcomes(table, party) for table in self.tables]) for party in (0, 1)
        ]
        self.table_of = [np.array([at[t] for t, _ in known], np.int64) for known in self.profiles]
        self.points = [
            np.array([self._points(*profile, party) for profile in self.profiles[party]], np.int64)
            for party in (0, 1)
        ]
        self.takes = [
            np.array([self._taken(table, party) for table in self.tables], np.int64)
            for party in (0, 1)
        ]
        self.possible = self.outcome[0] != NONE  # (C, G): the system's proposals are outcomes
        self.best = [points.max(1) for points in self.points]
        self.needs_of = [self.needs(party) for party in (0, 1)]
        self.proposals = [self._proposals(party) for party in (0, 1)]

    @abstractmethod
    def _size(self) -> int:
        """Number of outcomes."""

    @abstractmethod
    def _scenarios(self) -> Scenarios:
        """Tables, profiles of both parties, and the pairs of profiles that can meet."""

    @abstractmethod
    def _outcomes(self, table: Numbers, party: int) -> list[int]:
        """The outcome of each proposal of a party."""

    @abstractmethod
    def _points(self, table: Numbers, values: Numbers, party: int) -> list[int]:
        """Points of each outcome."""

    @abstractmethod
    def _taken(self, table: Numbers, party: int) -> list[int]:
        """Amount of the table that a party takes by each outcome."""

    @abstractmethod
    def proposal(self, table: Numbers, code: int) -> str:
        """Text of a proposal that is possible."""

    @abstractmethod
    def read(self, table: int, text: str, heard: PriorOffers) -> int | None:
        """The proposal that a text in lower case makes.

        Args:
            table: the row of what is on the table.
            text: English.
            heard: what was said before, for texts that refer to it.

        Returns:
            Its number, NONE for one that is impossible; None where nothing is proposed.
        """

    @abstractmethod
    def limits(self, table: Numbers) -> str:
        """The proposals that are possible, in a sentence."""

    @abstractmethod
    def act_name(self, code: int) -> str:
        """Name of a proposal, whatever is on the table."""

    @abstractmethod
    def knowledge(self, table: Numbers, values: Numbers, party: int) -> str:
        """Knowledge of a party at the beginning, in words."""

    @abstractmethod
    def features(self, party: int) -> np.ndarray:
        """(P, F) float32 from 0 to 1: the profiles of a party."""

    @abstractmethod
    def shares(self, party: int) -> np.ndarray:
        """(C, G, K) float32 from 0 to 1: what a party gets by each outcome."""

    @abstractmethod
    def needs(self, party: int) -> np.ndarray:
        """(P, 2) int64: the kinds that a party needs most, and least."""

    def _proposals(self, party: int) -> np.ndarray:
        """(P, most + 1) int64: the outcome that a party proposes to have at least so many points.

        Of those it takes the one that leaves most on the table, then the one of most points, then
        the first; where none has so many, the one of most points.
        """
        points, tables = self.points[party], self.table_of[party]
        possible = self.possible[tables]
        taken = self.takes[party][tables]
        taken = taken - taken.min()
        width = self.most + 1
        cost = taken * width + (self.most - points)
        far = int(cost.max()) + 1
        best = np.where(possible, points, -1).max(1)
        found = np.empty((len(points), width), np.int64)
        for least in range(width):
            enough = possible & (points >= np.minimum(least, best)[:, None])
            found[:, least] = np.where(enough, cost, far).argmin(1)
        return found


class _Things(Game):
    """Things of three kinds are divided; an outcome is how many of each the system gets."""

    kind_by_kind = False  # people agree on one kind after the other
    width: int  # an outcome is a number of so many as base

    def _size(self) -> int:
        return self.width ** len(self.kinds)

    def code(self, share: Sequence[int]) -> int:
        """The number of a share."""
        a, b, c = share
        return (a * self.width + b) * self.width + c

    @property
    def all_shares(self) -> list[Numbers]:
        return list(product(range(self.width), repeat=len(self.kinds)))

    def _outcomes(self, table: Numbers, party: int) -> list[int]:
        return [self.code(share) if share else NONE for share in self._gained(table, party)]

    def _points(self, table: Numbers, values: Numbers, party: int) -> list[int]:
        return [sum(v * s for v, s in zip(values, g)) for g in self._gained(table, party)]

    def _gained(self, table: Numbers, party: int) -> list[Numbers]:
        """Share of a party by each outcome; () where that is impossible."""
        found: list[Numbers] = []
        for share in self.all_shares:
            rest = tuple(n - s for n, s in zip(table, share))
            found.append(() if min(rest) < 0 else rest if party else share)
        return found

    def _taken(self, table: Numbers, party: int) -> list[int]:
        return [sum(share) for share in self._gained(table, party)]

    def counted(self, table: Sequence[int]) -> str:
        """``2 books, 1 hat and 3 balls``."""
        first, second, third = (f"{n} {kind[n != 1]}" for n, kind in zip(table, self.kinds))
        return f"{first} {second} and {third}"

    def proposal(self, table: Numbers, code: int) -> str:
        return f"i take {self.counted(self.all_shares[code])}"

    @cached_property
    def _kinds(self) -> dict[str, int]:
        """The place of each word for a kind."""
        return {word: at for at, kind in enumerate(self.kinds) for word in kind}

    @cached_property
    def _single(self) -> frozenset[str]:
        """Words for one of a kind."""
        return frozenset(one for one, many in self.kinds if one != many)

    def read(self, table: int, text: str, heard: PriorOffers) -> int | None:
        there = self.tables[table]
        share = share_of(
            text, there, self._kinds, self._single, self._before(there, heard), self.kind_by_kind
        )
        if share is None:
            return None
        if any(not 0 <= part <= n for part, n in zip(share, there)):
            return NONE
        return self.code(share)

    def _before(self, there: Numbers, heard: PriorOffers) -> Numbers | None:
        """The share of who speaks by the other's last offer, else by its own; None without any."""
        last = next((one for one in heard.latest if one != NONE), None)
        if last is None:
            return None
        share = self.all_shares[last]
        return tuple(n - s for n, s in zip(there, share)) if heard.party else share

    def limits(self, table: Numbers) -> str:
        return f"There are {self.counted(table)}."

    def act_name(self, code: int) -> str:
        return self.proposal((), code)

    def features(self, party: int) -> np.ndarray:
        most = max(max(values) for _, values in self.profiles[party])
        return np.array(
            [
                [*(n / (self.width - 1) for n in table), *(v / most for v in values)]
                for table, values in self.profiles[party]
            ],
            np.float32,
        )

    def shares(self, party: int) -> np.ndarray:
        gained = [[g or (0, 0, 0) for g in self._gained(t, party)] for t in self.tables]
        return np.array(gained, np.float32) / (self.width - 1)

    def needs(self, party: int) -> np.ndarray:
        values = np.array([values for _, values in self.profiles[party]])
        return np.stack([values.argmax(1), values.argmin(1)], 1)


class Items(_Things):
    """Deal or No Deal: 5 to 7 items of three kinds, all worth 10 points to each party."""

    name, kinds, most, width = "items", ITEMS, 10, MOST + 1
    tells = tuple(f"i need {many} most" for _, many in ITEMS)

    def _scenarios(self) -> Scenarios:
        every = product(range(1, self.width), repeat=3)
        tables: list[Numbers] = [table for table in every if 5 <= sum(table) <= 7]
        profiles, pairs = Profiles(), list[tuple[int, int]]()
        for table in tables:
            known = [
                values
                for values in product(range(self.most + 1), repeat=3)
                if sum(n * v for n, v in zip(table, values)) == self.most
            ]
            begin = len(profiles)
            profiles += [(table, values) for values in known]
            for (i, a), (j, b) in product(enumerate(known, begin), repeat=2):
                wanted = all(x or y for x, y in zip(a, b))
                if wanted and any(x and y for x, y in zip(a, b)):
                    pairs.append((i, j))
        return tables, [profiles, profiles], pairs

    def knowledge(self, table: Numbers, values: Numbers, party: int) -> str:
        worth = (f"a {kind[0]} is worth {value}" for kind, value in zip(self.kinds, values))
        return f"there are {self.counted(table)} {' '.join(worth)}"


class Goods(_Things):
    """CaSiNo: three packages each of food, water and firewood; needs of 5, 4 and 3 points."""

    name, kinds, most, width, apart = "goods", GOODS, 36, 4, 5
    tells = tuple(f"i need {many} most" for _, many in GOODS)
    kind_by_kind = True

    def _scenarios(self) -> Scenarios:
        table: Numbers = (3, 3, 3)
        known: Profiles = [(table, values) for values in permutations((5, 4, 3))]
        pairs = [(i, j) for i in range(len(known)) for j in range(len(known))]
        return [table], [known, known], pairs

    def knowledge(self, table: Numbers, values: Numbers, party: int) -> str:
        worth = (f"{kind[0]} is worth {value}" for kind, value in zip(self.kinds, values))
        return f"there are {self.counted(table)} {' '.join(worth)}"


class Price(Game):
    """Craigslist: the system buys, the user sells; a point for each 5 % of the list price."""

    name, kinds, most = "price", (("price", "price"),), 10
    tells = ("i need a better price",)

    def _size(self) -> int:
        return DEAREST - CHEAPEST + 1

    def _scenarios(self) -> Scenarios:
        tables: list[Numbers] = [(price,) for price in LISTS]
        buyers: Profiles = [(t, (target,)) for t in tables for target in range(CHEAPEST, 20)]
        sellers: Profiles = [(t, (target,)) for t in tables for target in range(16, DEAREST + 1)]
        pairs = [
            (i, j)
            for i, (own, low) in enumerate(buyers)
            for j, (other, high) in enumerate(sellers)
            if own == other and 0 < high[0] - low[0] < self.most
        ]
        return tables, [buyers, sellers], pairs

    def _outcomes(self, table: Numbers, party: int) -> list[int]:
        return list(range(self.size))

    def _points(self, table: Numbers, values: Numbers, party: int) -> list[int]:
        away = (step - values[0] for step in range(CHEAPEST, DEAREST + 1))
        lost = (-step if party else step for step in away)
        return [min(max(self.most - step, 0), self.most) for step in lost]

    def _taken(self, table: Numbers, party: int) -> list[int]:
        steps = range(self.size)
        return list(steps) if party else [-step for step in steps]

    def dollars(self, table: Numbers, step: int) -> int:
        """The price of a number of steps."""
        return table[0] * step // STEPS

    def proposal(self, table: Numbers, code: int) -> str:
        return f"i offer {self.dollars(table, CHEAPEST + code)} dollars"

    def read(self, table: int, text: str, heard: PriorOffers) -> int | None:
        """The last price that can be proposed, of the nearest step."""
        (listed,) = self.tables[table]
        last = [None if one == NONE else listed * (CHEAPEST + one) / STEPS for one in heard.offers]
        offers = LastPrices(last[self.seller], last[1 - self.seller])
        found = amounts(text)
        prices = [price for one in found if (price := one.dollars(listed, offers)) is not None]
        steps = [round(STEPS * price / listed) for price in prices]
        possible = [step for step in steps if CHEAPEST <= step <= DEAREST]
        return possible[-1] - CHEAPEST if possible else (NONE if found else None)

    def limits(self, table: Numbers) -> str:
        low, high = self.dollars(table, CHEAPEST), self.dollars(table, DEAREST)
        return f"Prices are from {low} to {high}, named or by the last offers of both."

    def knowledge(self, table: Numbers, values: Numbers, party: int) -> str:
        target = self.dollars(table, values[0])
        return f"the list price is {table[0]} dollars i want {target} dollars"

    def act_name(self, code: int) -> str:
        return f"offer {100 * (CHEAPEST + code) // STEPS} %"

    def features(self, party: int) -> np.ndarray:
        return np.array(
            [[t[0] / LISTS[-1], v[0] / DEAREST] for t, v in self.profiles[party]], np.float32
        )

    def shares(self, party: int) -> np.ndarray:
        steps = np.arange(CHEAPEST, DEAREST + 1, dtype=np.float32) / DEAREST
        return np.tile(steps[None, :, None], (len(self.tables), 1, 1))

    def needs(self, party: int) -> np.ndarray:
        return np.zeros((len(self.profiles[party]), 2), np.int64)


GAMES: dict[str, type[Game]] = {"items": Items, "goods": Goods, "price": Price}


@lru_cache(maxsize=8)
def game_of(kind: type[Game]) -> Game:
    """The game of a class, made once in a process."""
    return kind()
