"""Selling cars: bargaining with a customer whose limit, wish and liking are hidden.

This is a game of bargaining rather than a family of its own: what is said, what stands and when it
is over are the same rules, and so are views, batches and the search for best responses.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from dialgym.tasks.bargain.cars import NAMES, Cars
from dialgym.tasks.bargain.games import Game
from dialgym.tasks.bargain.task import ROOM, Bargain
from dialgym.tasks.bargain.types import BargainState
from dialgym.tasks.base import SYSTEM, USER

DEALERS = f"{ROOM}.dealers"
_POLICIES = f"{ROOM}.policies"
_CUSTOMERS = {
    "customer": f"{DEALERS}:Customer",
    "conceding": f"{_POLICIES}:Conceding",
    "tit-for-tat": f"{_POLICIES}:TitForTat",
    "stubborn": f"{_POLICIES}:Stubborn",
    "fair": f"{_POLICIES}:Fair",
    "random": f"{_POLICIES}:RandomNegotiator",
}
_DEALERS = {
    "dealer": f"{DEALERS}:Dealer",
    "optimal": f"{DEALERS}:OptimalDealer",
    "best-response": f"{DEALERS}:InformedDealer",
    "random-mixture": f"{DEALERS}:DealerMixture",
    "random": f"{_POLICIES}:RandomNegotiator",
}


class CarDealer(Bargain):
    """Sell a car, at a price as high as the customer will pay.

    The `system` sells a sedan, an suv and a truck, whose list prices both know. The `user` buys. It
    has a limit, which is 75, 85, 95 or 105 % of the list price, one of the cars that it wishes, and
    something that it cares about: a discount, the brand or the features. All 36 customers are as
    likely. They speak in turns, the system first; the dialogue is over (terminated) when an offer
    is accepted, which is a success; when somebody leaves; or after the last of the `turns`.

    Acts: a car at a price, in steps of 5 % of its list price from 60 to 110 %; accept, reject,
    insist on one's last offer, ask what the other needs, leave; talk about a discount, the brand,
    or the features. English is understood by rules, prices as ``18,500``, ``18.5k`` and ``5 %
    off``; what is not understood costs a turn and changes nothing.

    Rewards, at the end: the system gets a point for each 5 % of the list price, 20 for the list
    price itself; the customer one for each 5 % that it pays less than a step above its limit, which
    is 20 % of the list price lower for a car that it does not wish. Without a deal both get 0.

    The default customer plays by rules that draw nothing (`dialgym.tasks.bargain.dealers`): treated
    as it likes it pays up to its limit, else less. Others are all negotiators of bargaining, and
    language models. The policy `optimal` has the best expected return of all that know these rules
    and what was said, by dynamic programming over beliefs; `best-response` sees the customer's
    values too, which is a bound that nobody who does not can be asked to reach.

    Args:
        turns: utterances of the system in a dialogue.
        constraint: what action masks allow: ``"acts"`` (texts of acts), or None (any text).
        longest: characters of an utterance that are looked at, at least.

    Options of reset: ``user``, the values of a customer: its limit in steps of 5 %, the number of
    the car that it wishes, and that of what it cares about, such as ``[19, 1, 2]``.

    Versions:
        v0: the first, of dialgym 0.1.

    Raises:
        ValueError: a setting is not one of the above.

    Source: the game is that of LMRL-Gym (Abdulhai et al., 2023), whose customer is a language model
    that was trained on dialogues of others; there the reward is the price, too. Cars, customers and
    texts are our own.
    """

    name = "CarDealer"
    version = 0
    how_to_play = {  # noqa: RUF012
        SYSTEM: "You sell cars. Find out what the customer wants, and sell a car as dearly as you "
        "can.",
        USER: "You want to buy a car, for as little as you can.",
    }
    games: ClassVar[Mapping[str, type[Game]]] = {"cars": Cars}
    proposing = "To name a car and its price"
    options = ("user",)
    speakers = {USER: _CUSTOMERS, SYSTEM: _DEALERS}  # noqa: RUF012
    act_classes = {  # noqa: RUF012
        SYSTEM: f"{ROOM}.party_acts:CarDealerActs",
        USER: f"{ROOM}.party_acts:CarCustomerActs",
    }
    best_responses = {  # noqa: RUF012
        name: {"name": "best-response", "partner": name} for name in list(_CUSTOMERS)[:5]
    }
    generators = {  # noqa: RUF012
        name: f"{DEALERS}:{name}" for name in ("graded", "branching", "halves")
    }

    def __init__(self, turns: int = 6, constraint: str | None = "acts", longest: int = 80) -> None:
        super().__init__("cars", turns, constraint, longest)

    @classmethod
    def surroundings(cls, settings: Mapping[str, Any]) -> None:
        """None: no files are read."""

    def rules(self, party: str) -> str:
        """The rules of the game, as a party is told them."""
        about = (
            f"On sale are: {', '.join(NAMES)}. Prices are multiples of 5 % of the list price, from "
            "60 to 110 %. If you do not agree you get nothing."
        )
        if party == SYSTEM:
            return (
                f"{about} You get a point for each 5 % of the list price, and a customer who is "
                "treated as it likes pays more."
            )
        return (
            f"{about} You get a point for the deal, and one for each 5 % of the list price that "
            "you pay less than your limit; another car than the one you want is worth 20 % less "
            "to you."
        )

    def secrets(self) -> Sequence[Mapping[str, Any]]:
        """Options that fix the customer, one for each."""
        return [{"user": list(values)} for _, values in self.game.profiles[1]]

    def hypotheses(self, state: BargainState) -> int:
        """See `dialgym.tasks.ExactPosterior`."""
        return len(self.game.profiles[1])

    def truth(self, state: BargainState) -> int:
        """The number of the customer."""
        return state.user

    def suppose(self, state: BargainState, place: int) -> BargainState:
        """The same dialogue with another customer."""
        other = state.copy()
        other.user = place
        return other

    def posterior(self, state: BargainState) -> np.ndarray:
        """(H,) float64: those who would have said what was said, by the rules of `customer`.

        All where none would have, as another one buys.
        """
        shares = np.zeros(self.hypotheses(state))
        shares[[one.user for one in self._belief(state)]] = 1
        shares /= shares.sum()
        return shares

    def value(self, state: BargainState) -> float:
        """Points that the system can expect with `customer`, by what was said.

        Raises:
            ValueError: the search would be too long.
        """
        if state.over:
            return 0.0
        belief = self._belief(state)
        return float(self._search.value(self, belief, 0) / len(belief))

    def action_values(self, state: BargainState) -> np.ndarray:
        """(A,) best expected points of the system by each act; -inf of those that are not allowed.

        All 0 where the dialogue is over, or the customer is to speak.

        Raises:
            ValueError: the search would be too long.
        """
        acts = self.acts[SYSTEM]
        values = np.zeros(len(acts.names))
        if not state.over and not state.waiting:
            mask, belief = acts.mask(state), self._belief(state)
            found = self._search.values(self, belief, np.flatnonzero(mask).tolist())
            values[:] = -np.inf
            values[mask] = np.array(found) / len(belief)
        return values

    def _belief(self, state: BargainState) -> list[BargainState]:
        found: list[BargainState] = self._search.belief(self, state, 0)
        return found

    @property
    def _search(self) -> Any:
        return self.speaker_named(SYSTEM, "optimal").search  # type: ignore[attr-defined]
