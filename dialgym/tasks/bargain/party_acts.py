"""Acts of both parties of bargaining."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from dialgym.tasks.acts import ActPolicy, PartyActs
from dialgym.tasks.bargain import dealers, policies
from dialgym.tasks.bargain.batch import views
from dialgym.tasks.bargain.task import Bargain
from dialgym.tasks.bargain.types import (
    ACCEPT,
    ASK,
    INSIST,
    NONE,
    REJECT,
    BargainState,
    View,
)

Generator = np.random.Generator


class NegotiatorActs(PartyActs):
    """Proposals of what the party gets itself, accept, reject, insist, ask, leave, tell a need.

    Observation, from 0 to 1: the table and the party's values; then for the offer of the other
    party that stands, for its first and its last, and for the party's own last: whether there is
    one, the party's share by kind, and its points; the kind that the other party needs, one-hot;
    whether it has just asked; the share of the turns that are over. The mask allows proposals that
    are possible, accepting and rejecting where an offer stands, and insisting on what was proposed.

    Args:
        task: the rules.
    """

    party = 0
    policies: ClassVar[Mapping[str, Callable[..., ActPolicy]]] = {
        "conceding": policies.Conceding,
        "tit-for-tat": policies.TitForTat,
        "stubborn": policies.Stubborn,
        "fair": policies.Fair,
        "deceiving": policies.Deceiving,
        "best-response": policies.BestResponse,
        "bayes-response": policies.BayesResponse,
        "random": policies.RandomNegotiator,
    }

    def __init__(self, task: Bargain) -> None:
        self.task = task
        game = task.game
        self.names = (*(game.act_name(code) for code in range(game.size)), *task.general)
        self._profiles, self._shares = game.features(self.party), game.shares(self.party)
        self._possible = game.outcome[self.party] != NONE
        self._kinds = np.eye(len(game.kinds) + 1, dtype=np.float32)[:, :-1]
        self.size = self.observed(views([BargainState(0, 0)], self.party)).shape[1]

    def observed(self, view: View) -> np.ndarray:
        """(k, B) float32: observations of k dialogues."""
        game, profile = self.task.game, view.profile
        table, points = game.table_of[self.party][profile], game.points[self.party]
        parts = [self._profiles[profile]]
        for offer in (view.open, view.first, view.last, view.own):
            there = (offer != NONE)[:, None].astype(np.float32)
            worth = (points[profile, offer] / game.most).astype(np.float32)
            parts += [there, there * self._shares[table, offer], there * worth[:, None]]
        turn = np.stack([view.asked, view.turn / self.task.turns], 1).astype(np.float32)
        return np.concatenate([*parts, self._kinds[view.told], turn], 1)

    def masks(self, view: View) -> np.ndarray:
        """(k, A) bool: masks of k dialogues."""
        size, table = self.task.game.size, self.task.game.table_of[self.party][view.profile]
        masks = np.ones((len(table), len(self.names)), bool)
        masks[:, :size] = self._possible[table]
        masks[:, size + ACCEPT] = masks[:, size + REJECT] = view.open != NONE
        masks[:, size + INSIST] = view.own != NONE
        return masks

    def observe(self, state: BargainState) -> np.ndarray:
        return self.observed(views([state], self.party))[0].copy()

    def observe_many(self, states: Sequence[BargainState]) -> np.ndarray:
        return self.observed(views(states, self.party))

    def mask(self, state: BargainState) -> np.ndarray:
        return self.masks(views([state], self.party))[0].copy()

    def mask_many(self, states: Sequence[BargainState]) -> np.ndarray:
        return self.masks(views(states, self.party))

    def text(self, state: BargainState, action: Any, rng: Generator) -> str:
        """The text of an act; of a proposal of more than there is, that of as much as there is."""
        table, code = self.task.table(state, self.party), int(action)
        return self.task.texts[table][code] or self.task.game.proposal((), code)

    def read(self, state: BargainState, text: str) -> int:
        """The act that a text is taken for; a question if it is not understood."""
        code = self.task.read(state, text)
        return code if code != NONE else self.task.game.size + ASK


class SystemBargainActs(NegotiatorActs):
    """Acts of the system, which buys in a game of a price."""


class UserBargainActs(NegotiatorActs):
    """Acts of the user, which sells in a game of a price."""

    party = 1


class CarDealerActs(NegotiatorActs):
    """Acts of the system that sells cars."""

    policies = dealers.DEALERS


class CarCustomerActs(NegotiatorActs):
    """Acts of the user that buys a car."""

    party = 1
    policies = dealers.CUSTOMERS
