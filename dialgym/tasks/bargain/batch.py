"""Bargaining in batches: the rules of `task.py` over arrays."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dialgym.language import Constraint, Utterance
from dialgym.tasks.bargain.task import Bargain
from dialgym.tasks.bargain.types import (
    ACCEPT,
    ASK,
    INSIST,
    LEAVE,
    NONE,
    REJECT,
    TELL,
    BargainState,
    PriorOffers,
    View,
    view_of,
)
from dialgym.tasks.base import SYSTEM, USER
from dialgym.tasks.batch import BatchOutcome, RowStates, silence

Generators = Sequence[np.random.Generator]


class BargainBatch:
    """`size` dialogues of a learner with a scripted negotiator; equal to as many `BargainState`s.

    Args:
        task: the rules.
        size: number of rows.
        party: the index of the learner.
        negotiator: a `policies.Negotiator`, who does not end a dialogue with its first utterance.
    """

    def __init__(self, task: Bargain, size: int, party: int, negotiator: Any) -> None:
        self.task, self.party, self.negotiator = task, party, negotiator
        self.profile = np.zeros((2, size), np.int64)
        self.table = np.zeros(size, np.int64)
        self.turns = np.zeros(size, np.int64)
        self.texts = np.full((2, size, task.turns), "", object)
        self.offers = np.full((4, size), NONE, np.int64)  # first of both, last of both
        self.told = np.full((2, size), NONE, np.int64)
        self.open = np.full(size, NONE, np.int64)
        self.owner = np.full(size, NONE, np.int64)
        self.deal = np.full(size, NONE, np.int64)
        self.asked = np.zeros(size, bool)
        self.waiting = np.zeros(size, bool)
        self.over = np.zeros(size, bool)
        self.understood = np.zeros(size, np.int64)

    def draw(
        self, rows: np.ndarray, rngs: Generators, options: Mapping[str, Any]
    ) -> list[tuple[int, int]]:
        return [self.task.draw(rngs[row], options) for row in rows.tolist()]

    def begin(
        self, rows: np.ndarray, drawn: list[tuple[int, int]], rngs: Generators
    ) -> BatchOutcome:
        self.profile[:, rows] = np.array(drawn, np.int64).reshape(-1, 2).T
        self._begin(rows)
        party, count = self.party, len(rows)
        told = [self.task.opening(self.task.parties[party], row[party]).text for row in drawn]
        heard = np.array([told, self._answers(rows, rngs).tolist()] if party else [told], object)
        speakers = np.array([1, 0] if party else [0], np.int64)
        return silence(count)._replace(
            heard_texts=heard.T.ravel().astype(np.str_),
            heard_parties=np.tile(speakers, count),
            heard_rows=np.repeat(np.arange(count), len(speakers)),
        )

    def _begin(self, rows: np.ndarray) -> None:
        self.table[rows] = self.task.game.table_of[0][self.profile[0, rows]]
        self.turns[rows] = self.understood[rows] = 0
        self.offers[:, rows] = self.told[:, rows] = NONE
        self.open[rows] = self.owner[rows] = self.deal[rows] = NONE
        self.asked[rows] = self.waiting[rows] = self.over[rows] = False

    def say(self, rows: np.ndarray, texts: np.ndarray, rngs: Generators) -> BatchOutcome:
        task, read = self.task, self.task.understanding.read
        said = texts.tolist()
        heard = self._heard(rows)
        codes = np.array([read(*one) for one in zip(self.table[rows].tolist(), said, heard)])
        self._note(self.party, rows, codes, said)
        places = np.flatnonzero(~self.over[rows])
        going = rows[places]
        answers = self._answers(going, rngs)
        over, agreed = self.over[rows], self.deal[rows] != NONE
        points = task.game.points[self.party][self.profile[self.party, rows], self.deal[rows]]
        reward = np.where(over, np.where(agreed, points, task.game.apart), 0).astype(float)
        return BatchOutcome(
            reward,
            over,
            np.zeros(len(rows), bool),
            agreed,
            {"points": reward},
            answers.astype(np.str_),
            np.full(len(going), 1 - self.party, np.int64),
            places,
        )

    def _heard(self, rows: np.ndarray) -> list[PriorOffers]:
        """As much of each row as a text of the learner may refer to; see `types.prior_offers`."""
        stands = (self.open[rows] != NONE) & (self.owner[rows] == 1 - self.party)
        last = map(tuple, self.offers[2:, rows].T.tolist())
        return [
            PriorOffers(self.party, *one)
            for one in zip(last, stands.tolist(), self.asked[rows].tolist())
        ]

    def _answers(self, rows: np.ndarray, rngs: Generators) -> np.ndarray:
        """(k,) texts that the negotiator says in each of the rows."""
        if not len(rows):
            return np.zeros(0, object)
        other, own = 1 - self.party, [rngs[row] for row in rows.tolist()]
        codes = self.negotiator.choose_in(self.task, other, self.states(rows), own)
        texts: np.ndarray = self.task.said[self.table[rows], codes]
        self._note(other, rows, codes, texts)
        return texts

    def _note(self, party: int, rows: np.ndarray, codes: np.ndarray, texts: Any) -> None:
        """Let a party say something in each of the rows."""
        self.texts[party, rows, self.turns[rows] - party] = texts
        self._apply(party, rows, codes)

    def _apply(self, party: int, rows: np.ndarray, codes: np.ndarray) -> None:
        """Change rows by an act of a party each; see `Bargain.apply`."""
        game, acts = self.task.game, codes - self.task.game.size
        theirs = (self.owner[rows] == 1 - party) & (self.open[rows] != NONE)
        self.asked[rows] = acts == ASK
        self.understood[rows] += codes != NONE
        self.turns[rows] += 1 - party
        self.waiting[rows] = party == 0
        proposes = (codes >= 0) & (acts < 0)
        if proposes.any():
            at = rows[proposes]
            offer = game.outcome[party][self.table[at], codes[proposes]]
            self.open[at] = self.offers[2 + party, at] = offer
            self.owner[at] = party
            first = self.offers[party, at]
            self.offers[party, at] = np.where(first == NONE, offer, first)
        if not proposes.all():
            at = rows[(acts == ACCEPT) & theirs]
            self.deal[at] = self.open[at]
            at = rows[(acts == REJECT) & theirs]
            self.open[at] = self.owner[at] = NONE
            at = rows[(acts == INSIST) & (self.offers[2 + party, rows] != NONE)]
            self.open[at], self.owner[at] = self.offers[2 + party, at], party
            tells = acts >= TELL
            self.told[party, rows[tells]] = acts[tells] - TELL
        ended = (self.turns[rows] == self.task.turns) & (party == 1)
        self.over[rows] = (acts == LEAVE) | (self.deal[rows] != NONE) | ended

    def view(self, rows: np.ndarray, party: int) -> View:
        """View of a party of the rows; see `types.view_of`."""
        other = 1 - party
        return View(
            self.profile[party, rows],
            self.turns[rows] - (self.waiting[rows] & (party == 1)),
            np.where(self.owner[rows] == other, self.open[rows], NONE),
            self.offers[other, rows],
            self.offers[2 + other, rows],
            self.offers[2 + party, rows],
            self.told[other, rows],
            self.told[party, rows],
            self.asked[rows].astype(np.int64),
        )

    def observations(self) -> np.ndarray:
        """(N, B) float32: see `party_acts.NegotiatorActs.observe`."""
        acts: Any = self.task.acts[self.task.parties[self.party]]
        seen: np.ndarray = acts.observed(self.view(np.arange(len(self.turns)), self.party))
        return seen

    def act_masks(self) -> np.ndarray:
        """(N, A) bool: see `party_acts.NegotiatorActs.mask`."""
        acts: Any = self.task.acts[self.task.parties[self.party]]
        masks: np.ndarray = acts.masks(self.view(np.arange(len(self.turns)), self.party))
        return masks

    def transcript(self, row: int) -> list[Utterance]:
        profile, name = int(self.profile[self.party, row]), self.task.parties[self.party]
        return [self.task.opening(name, profile), *self._lines(row)]

    def _lines(self, row: int) -> list[Utterance]:
        turns = int(self.turns[row])
        both = zip(*(self.texts[party, row, :turns].tolist() for party in (0, 1)))
        lines = [Utterance(*line) for pair in both for line in zip((SYSTEM, USER), pair)]
        return lines[:-1] if self.waiting[row] else lines

    def constraint(self, row: int) -> Constraint:
        return self.task.constraint_of(int(self.table[row]))

    def turn(self, rows: np.ndarray) -> np.ndarray:
        """Of the user, who answers, one less while it is to speak."""
        return self.turns[rows] - (self.waiting[rows] & (self.party == 1))

    def states(self, rows: np.ndarray) -> "Negotiations":
        """The dialogues of the rows."""
        return Negotiations(self, rows)

    def state(self, row: int) -> BargainState:
        """The dialogue of a row, made again."""
        first, last = self.offers[:2, row].tolist(), self.offers[2:, row].tolist()
        system, user = self.profile[:, row].tolist()
        return BargainState(
            system,
            user,
            self._lines(row),
            first,
            last,
            self.told[:, row].tolist(),
            int(self.open[row]),
            int(self.owner[row]),
            bool(self.asked[row]),
            int(self.understood[row]),
            int(self.turns[row]),
            bool(self.waiting[row]),
            bool(self.over[row]),
            int(self.deal[row]),
        )

    def restore(self, row: int, state: BargainState, turn: int) -> None:
        """Let a row go on from a dialogue in which the learner is to speak."""
        self.profile[:, row] = state.system, state.user
        self._begin(np.array([row]))
        self.turns[row], self.understood[row] = state.turns, state.understood
        self.offers[:, row] = *state.first, *state.last
        self.told[:, row] = state.told
        self.open[row], self.owner[row], self.deal[row] = state.open, state.owner, state.deal
        self.asked[row], self.waiting[row] = state.asked, state.waiting
        self.over[row] = state.over
        for party, name in enumerate((SYSTEM, USER)):
            said = [line.text for line in state.lines if line.speaker == name]
            self.texts[party, row, : len(said)] = said


class Negotiations(RowStates):
    """Rows of a batch, whose views need no states."""

    def view(self, party: int) -> View:
        """See `BargainBatch.view`."""
        view: View = self._batch.view(self._rows, party)
        return view


def views(states: Sequence[BargainState], party: int) -> View:
    """View of the party of that index, of states or of rows of a batch."""
    return states.view(party) if isinstance(states, Negotiations) else view_of(list(states), party)
