"""Scripted negotiators, for either party.

All but `BestResponse` know only what their side has seen. They choose for many dialogues
at once: `Negotiator.choose` maps the views of k dialogues to k acts.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, ClassVar

import numpy as np

from dialgym.tasks.bargain.batch import views
from dialgym.tasks.bargain.best_response import ResponseSearch
from dialgym.tasks.bargain.task import Bargain
from dialgym.tasks.bargain.types import ACCEPT, NONE, TELL, BargainState, View
from dialgym.tasks.generators import Leg, Relay, by_halves

Generator = np.random.Generator


class Negotiator:
    """Wants so many points at each turn: accepts what gives them, else proposes what does.

    Of the outcomes with enough points it proposes the one that takes least of what there is. Asked
    for its need it tells the kind that is worth most to it, but not with its last turn. With that
    it accepts whatever is better than no deal. A subclass has `wants`.
    """

    told = 0
    """Column of `Game.needs` that it tells: what it needs most, 0, or least, 1."""
    yields = True  # with its last turn
    listens = False  # to the needs that the other party tells
    draws = False  # its acts

    def wants(self, task: Bargain, party: int, view: View) -> np.ndarray:
        """(k,) int64: points below which it does not accept.

        By the turn, the points of the offers of the other party, and the most that it can have.
        """
        raise NotImplementedError

    def recalls(self, task: Bargain, party: int, state: BargainState) -> tuple[int, ...]:
        """All that its acts depend on beside the turn, its profile and the offers that stand."""
        return ()

    def choose(
        self, task: Bargain, party: int, view: View, rngs: Sequence[Generator | None]
    ) -> np.ndarray:
        """(k,) int64: the acts of the party of that index."""
        game, profile = task.game, view.profile
        wanted = self.wants(task, party, view)
        offered = np.where(view.open == NONE, NONE, game.points[party][profile, view.open])
        final = view.turn == task.turns - 1
        enough = (offered >= wanted) | (final & self.yields & (offered > game.apart))
        asked = np.maximum(self.asks(task, party, view, wanted), 0)
        outcome = game.proposals[party][profile, asked]
        codes = game.outcome[party][game.table_of[party][profile], outcome]
        tell = self.tells(view) & ~final
        codes = np.where(tell, game.size + TELL + game.needs_of[party][profile, self.told], codes)
        return np.where((view.open != NONE) & enough, game.size + ACCEPT, codes)

    def asks(self, task: Bargain, party: int, view: View, wanted: np.ndarray) -> np.ndarray:
        """(k,) int64: points that it proposes to have, of those that it wants."""
        return wanted

    def tells(self, view: View) -> np.ndarray:
        """(k,) bool: whether it tells its need rather than propose."""
        asked: np.ndarray = view.asked == 1
        return asked

    def choose_in(
        self,
        task: Bargain,
        party: int,
        states: Sequence[BargainState],
        rngs: Sequence[Generator | None],
    ) -> np.ndarray:
        """(k,) int64: the acts in k dialogues, or rows of a batch, that the party goes on with."""
        return self.choose(task, party, views(states, party), rngs)

    def act(self, task: Bargain, state: BargainState, rng: Generator) -> int:
        """See `dialgym.tasks.ActPolicy`."""
        return int(self.choose_in(task, int(state.waiting), [state], [rng])[0])

    def reply(self, task: Bargain, state: BargainState, rng: Generator) -> str:
        code = self.act(task, state, rng)
        return task.texts[task.table(state, int(state.waiting))][code]

    def reply_many(
        self, task: Bargain, states: Sequence[BargainState], rngs: Sequence[Generator]
    ) -> Sequence[str]:
        """See `dialgym.simulators.BatchSpeaker`."""
        if not len(states):
            return []
        party = int(states[0].waiting)
        tables = task.game.table_of[party][views(states, party).profile]
        texts: list[str] = task.said[tables, self.choose_in(task, party, states, rngs)].tolist()
        return texts


def worth(task: Bargain, party: int, state: BargainState, offer: int) -> int:
    """Points of a party by an offer; NONE where there is no offer."""
    profile = state.user if party else state.system
    return NONE if offer == NONE else int(task.game.points[party][profile, offer])


class Conceding(Negotiator):
    """Wants the most at first, and half of it at last, less and less in equal steps."""

    pace = 1
    yields = False

    def wants(self, task: Bargain, party: int, view: View) -> np.ndarray:
        best = task.game.best[party][view.profile]
        given = (best - best // 2) * np.minimum(view.turn, task.turns - 1)
        wanted: np.ndarray = best - given // (self.pace * max(task.turns - 1, 1))
        return wanted


class Deceiving(Conceding):
    """Begins with the claim that it needs most what it needs least, and concedes half as much."""

    told, pace = 1, 2

    def tells(self, view: View) -> np.ndarray:
        told: np.ndarray = (view.asked == 1) | (view.turn == 0)
        return told


class TitForTat(Negotiator):
    """Gives as many points of its own as the other's offers have come towards it."""

    def recalls(self, task: Bargain, party: int, state: BargainState) -> tuple[int, ...]:
        offers = state.first[1 - party], state.last[1 - party]
        return tuple(worth(task, party, state, offer) for offer in offers)

    def wants(self, task: Bargain, party: int, view: View) -> np.ndarray:
        points, best = task.game.points[party], task.game.best[party][view.profile]
        came = points[view.profile, view.last] - points[view.profile, view.first]
        given = np.where(view.first == NONE, 0, np.maximum(came, 0))
        wanted: np.ndarray = np.maximum(best - given, task.game.apart + 1)
        return wanted


class Stubborn(Negotiator):
    """Wants four fifths of the most that it can have, to the end."""

    yields = False

    def wants(self, task: Bargain, party: int, view: View) -> np.ndarray:
        best = task.game.best[party][view.profile]
        wanted: np.ndarray = best - best // 5
        return wanted


class Fair(Negotiator):
    """Wants half of the most that it can have, from the beginning."""

    def wants(self, task: Bargain, party: int, view: View) -> np.ndarray:
        best = task.game.best[party][view.profile]
        wanted: np.ndarray = best - best // 2
        return wanted


class RandomNegotiator(Negotiator):
    """Any act that makes sense, all equally likely."""

    draws = True

    def choose(
        self, task: Bargain, party: int, view: View, rngs: Sequence[Generator | None]
    ) -> np.ndarray:
        masks = task.acts[task.parties[party]].masks(view)  # type: ignore[attr-defined]
        rows = [np.flatnonzero(mask) for mask in masks]
        return np.array(
            [row[_drawn(rng).integers(len(row))] for row, rng in zip(rows, rngs)], np.int64
        )


def _drawn(rng: Generator | None) -> Generator:
    assert rng is not None, "only deterministic negotiators are asked without a generator"
    return rng


PARTNERS: dict[str, type[Negotiator]] = {
    "conceding": Conceding,
    "tit-for-tat": TitForTat,
    "stubborn": Stubborn,
    "fair": Fair,
    "deceiving": Deceiving,
}
"""The deterministic ones."""


class BestResponse(Negotiator):
    """The best that can be done against a deterministic negotiator, by dynamic programming.

    It knows the values of both parties (`oracle`), and who the other one is.

    Args:
        partner: the other one, by name.

    Raises:
        ValueError: the other one is not deterministic, or unknown.
    """

    oracle = True
    partners: ClassVar[Mapping[str, type[Negotiator]]] = PARTNERS

    def __init__(self, partner: str = "conceding") -> None:
        if partner not in self.partners:
            raise ValueError(
                f"partner of best-response must be one of {', '.join(self.partners)}; got "
                f"{partner!r}."
            )
        self.partner = partner
        kind: Any = self.partners[partner]
        self.search = search_against(kind)

    def belief(self, task: Bargain, state: BargainState) -> Sequence[BargainState]:
        """The dialogues that may be: the one that is."""
        return [state]

    def choose_in(
        self,
        task: Bargain,
        party: int,
        states: Sequence[BargainState],
        rngs: Sequence[Generator | None],
    ) -> np.ndarray:
        found = [self.search.best(task, self.belief(task, state)) for state in states]
        return np.array([act for _, act in found], np.int64)


class BayesResponse(BestResponse):
    """The best that can be done by what was said, if one knows who the other one is.

    It maximises the expected points over all values by which the other would have said what it has
    said, each as likely; by dynamic programming over these beliefs.

    Raises:
        ValueError: as of `BestResponse`; or there are too many beliefs, which is known in play.
    """

    oracle = False

    def belief(self, task: Bargain, state: BargainState) -> Sequence[BargainState]:
        """The dialogues that cannot be told apart from this one."""
        return self.search.belief(task, state, int(state.waiting))


@cache
def search_against(partner: type[Negotiator]) -> ResponseSearch:
    """The search against a negotiator, which keeps what it has found."""
    return ResponseSearch(partner())


def mixture() -> Relay:
    """Dialogues of five negotiators, each from beginning to end: four scripted ones, one random."""
    makers = {**PARTNERS, "random": RandomNegotiator}
    del makers["deceiving"]
    return Relay({name: (Leg(made()),) for name, made in makers.items()})


halves = by_halves(Conceding, RandomNegotiator)
