"""Customers and dealers of `car_dealer.CarDealer`, and sets of dialogues."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from dialgym.errors import share
from dialgym.tasks.bargain.cars import DEAREST, DISCOUNT, PRICES
from dialgym.tasks.bargain.policies import (
    BayesResponse,
    BestResponse,
    Conceding,
    Fair,
    Negotiator,
    RandomNegotiator,
    Stubborn,
    TitForTat,
    worth,
)
from dialgym.tasks.bargain.task import Bargain
from dialgym.tasks.bargain.types import ACCEPT, ASK, NONE, TELL, BargainState, View
from dialgym.tasks.generators import by_halves, by_skill

Generator = np.random.Generator
RESERVE, BORED = 2, 4
"""Points below its limit that a customer keeps to, and does who is talked to about another kind."""
CAME = 2
"""Points that the dealer has to come down for who cares about a discount."""


class Customer(Negotiator):
    """Pays up to its limit to a dealer who treats it as it likes, and less to others.

    It is pleased by talk about the brand or the features, whichever it cares about, or, if it is a
    discount, by an offer that is `CAME` points better for it than the dealer's first one. Pleased
    it accepts whatever is within its limit; else it keeps `RESERVE` points, and `BORED` if the
    dealer has last talked about a kind that it does not care about. From its third turn on it has
    less patience, and keeps another point at each. It offers the lowest price for the car that it
    wishes, and with each turn a step more. Asked it tells the kind. Nothing of it is drawn.
    """

    yields = False
    listens = True

    def wants(self, task: Bargain, party: int, view: View) -> np.ndarray:
        points, cares = task.game.points[party], task.game.needs_of[party][view.profile, 0]
        came = points[view.profile, view.open] - points[view.profile, view.first]
        discounted = (view.open != NONE) & (came >= CAME)
        pleased = np.where(cares == DISCOUNT, discounted, view.told == cares)
        bored = (view.told != NONE) & (view.told != cares)
        kept = np.where(pleased, 0, np.where(bored, BORED, RESERVE))
        wanted: np.ndarray = 1 + kept + np.maximum(view.turn - 1, 0)
        return wanted

    def asks(self, task: Bargain, party: int, view: View, wanted: np.ndarray) -> np.ndarray:
        least: np.ndarray = np.maximum(wanted, task.game.best[party][view.profile] - view.turn)
        return least

    def recalls(self, task: Bargain, party: int, state: BargainState) -> tuple[int, ...]:
        dealer = 1 - party
        return worth(task, party, state, state.first[dealer]), state.told[dealer]


class Dealer(Negotiator):
    """Asks what the customer cares about, talks about it, then comes down from the list price.

    It offers the car that the customer has offered for, 5 % less at each turn, and accepts what is
    as good as its next offer; with its last turn it accepts any offer.
    """

    def choose(
        self, task: Bargain, party: int, view: View, rngs: Sequence[Generator | None]
    ) -> np.ndarray:
        size, step = task.game.size, DEAREST - view.turn
        car = np.maximum(view.last, 0) // PRICES
        own = np.clip(step - DEAREST + PRICES - 1, 0, PRICES - 1) + car * PRICES
        heeded = (view.told <= DISCOUNT) | (view.told == view.telling)
        code = np.where(heeded, own, size + TELL + view.told)
        code = np.where(view.turn == 0, size + ASK, code)
        offered = np.where(view.open == NONE, NONE, task.game.points[party][0, view.open])
        last = view.turn == task.turns - 1
        return np.where((view.open != NONE) & ((offered >= step) | last), size + ACCEPT, code)


class InformedDealer(BestResponse):
    """The best that can be done with a customer of whom everything is known (`oracle`)."""

    partners: ClassVar[Mapping[str, type[Negotiator]]] = {
        "customer": Customer,
        "conceding": Conceding,
        "tit-for-tat": TitForTat,
        "stubborn": Stubborn,
        "fair": Fair,
    }

    def __init__(self, partner: str = "customer") -> None:
        super().__init__(partner)


class OptimalDealer(BayesResponse, InformedDealer):
    """The best that can be done by what was said, with a customer whose rules are known."""


class DealerMixture(Negotiator):
    """With probability `smart` what `OptimalDealer` says, else what `RandomNegotiator` does."""

    draws = True

    def __init__(self, smart: float = 0.5) -> None:
        self.smart = share("smart of random-mixture", smart)
        self.parts = RandomNegotiator(), OptimalDealer()

    def choose_in(
        self,
        task: Bargain,
        party: int,
        states: Sequence[BargainState],
        rngs: Sequence[Generator | None],
    ) -> np.ndarray:
        chosen = [
            self.parts[rng is not None and int(rng.random() < self.smart)]
            .choose_in(task, party, [states[at]], [rng])
            .item()
            for at, rng in enumerate(rngs)
        ]
        return np.array(chosen, np.int64)


CUSTOMERS: Mapping[str, type[Negotiator]] = {
    **InformedDealer.partners,
    "random": RandomNegotiator,
}
DEALERS: Mapping[str, type[Negotiator]] = {
    "dealer": Dealer,
    "optimal": OptimalDealer,
    "best-response": InformedDealer,
    "random-mixture": DealerMixture,
    "random": RandomNegotiator,
}
graded, branching = by_skill(OptimalDealer, Dealer, RandomNegotiator, DealerMixture)
halves = by_halves(OptimalDealer, RandomNegotiator)
