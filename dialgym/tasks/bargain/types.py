"""The state of one negotiation, and what a party sees of many as arrays."""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from dialgym.language import Utterance

NONE = -1
"""Stands for an outcome, an act or a kind that is not there."""
ACCEPT, REJECT, INSIST, ASK, LEAVE, TELL = range(6)
"""Acts that follow the proposals, in this order; from TELL on one for each kind."""


@dataclass(slots=True)
class BargainState:
    """A negotiation.

    Offers are outcomes: what the system gets in a game of things, the price in a game of a price.
    Pairs have the system's entry first. `system` and `user` are rows of the profiles of each party
    (`games.Game`): what is on the table, and what it is worth to it.
    """

    system: int
    user: int
    lines: list[Utterance] = field(default_factory=list)
    first: list[int] = field(default_factory=lambda: [NONE, NONE])  # offer of each party
    last: list[int] = field(default_factory=lambda: [NONE, NONE])
    told: list[int] = field(default_factory=lambda: [NONE, NONE])  # the last kind that it needs
    open: int = NONE  # the offer that stands
    owner: int = NONE  # whose it is, 0 or 1
    asked: bool = False  # by the last utterance
    understood: int = 0  # utterances that were
    turns: int = 0  # utterances of the system
    waiting: bool = False  # for the user
    over: bool = False
    deal: int = NONE  # the outcome that was agreed on

    def copy(self) -> "BargainState":
        """An independent copy."""
        return BargainState(
            self.system,
            self.user,
            self.lines.copy(),
            self.first.copy(),
            self.last.copy(),
            self.told.copy(),
            self.open,
            self.owner,
            self.asked,
            self.understood,
            self.turns,
            self.waiting,
            self.over,
            self.deal,
        )


class PriorOffers(NamedTuple):
    """As much of a negotiation as a text may refer to.

    Attributes:
        party: the index of who speaks.
        offers: the last outcome that system and user proposed, or NONE.
        stands: whether the other party's stands, so that it can be accepted.
        asked: whether the other party has just asked something.
    """

    party: int = 0
    offers: tuple[int, int] = (NONE, NONE)
    stands: bool = False
    asked: bool = False

    @property
    def latest(self) -> tuple[int, int]:
        """Last offers of the other party and of who speaks, or NONE."""
        return self.offers[1 - self.party], self.offers[self.party]

    @property
    def other(self) -> int:
        """The other party's offer that can be accepted, or NONE."""
        return self.offers[1 - self.party] if self.stands else NONE


NO_OFFERS = PriorOffers()


def prior_offers(state: BargainState) -> PriorOffers:
    """As much of a negotiation as a text of who has the floor may refer to."""
    party = int(state.waiting)
    stands = state.open != NONE and state.owner == 1 - party
    return PriorOffers(party, (state.last[0], state.last[1]), stands, state.asked)


class View(NamedTuple):
    """Knowledge of one party in k negotiations, each (k,) int64."""

    profile: np.ndarray  # its own row
    turn: np.ndarray  # its own utterances so far
    open: np.ndarray  # the offer of the other party that stands, or NONE
    first: np.ndarray  # the first offer of the other party
    last: np.ndarray  # its last one
    own: np.ndarray  # the party's own last offer
    told: np.ndarray  # the kind that the other party says it needs
    telling: np.ndarray  # the kind that the party has said it needs
    asked: np.ndarray  # 1 where the other party has just asked


def view_of(states: list[BargainState], party: int) -> View:
    """View of the party of index `party`; only what it may know is read."""
    other = 1 - party
    name = ("system", "user")[party]
    rows = [
        (
            getattr(s, name),
            s.turns - int(s.waiting) if party else s.turns,
            s.open if s.owner == other else NONE,
            s.first[other],
            s.last[other],
            s.last[party],
            s.told[other],
            s.told[party],
            int(s.asked),
        )
        for s in states
    ]
    return View(*np.array(rows, np.int64).reshape(-1, 9).T)
