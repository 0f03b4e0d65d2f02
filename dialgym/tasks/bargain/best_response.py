"""The best response to a deterministic negotiator, by dynamic programming over what it sees."""

from typing import Any

import numpy as np

from dialgym.io.cache import PerTask
from dialgym.tasks.bargain.task import Bargain
from dialgym.tasks.bargain.types import (
    ACCEPT,
    ASK,
    LEAVE,
    NONE,
    REJECT,
    TELL,
    BargainState,
    view_of,
)

Found = tuple[int, int]
"""The most points that can still be had, and the act that begins with."""


class ResponseSearch:
    """Searches all that can be said to a negotiator that answers by the points of offers.

    Of the proposals that give it the same points only the best one for the searching party is
    tried: the negotiator does the same after each of them.

    Args:
        partner: a `policies.Negotiator` that draws nothing.
    """

    def __init__(self, partner: Any) -> None:
        self.partner = partner
        self._found = PerTask()

    def best(self, task: Bargain, state: BargainState) -> Found:
        """Points and act of the party whose turn it is, in a dialogue that is not over."""
        if task not in self._found:
            self._found[task] = {}
        known: dict[Any, Found] = self._found[task]
        bare = state.copy()
        bare.lines = []
        return self._best(task, bare, int(state.waiting), known)

    def _best(
        self, task: Bargain, state: BargainState, party: int, known: dict[Any, Found]
    ) -> Found:
        key = self._key(task, state, party)
        if key in known:
            return known[key]
        tried = self._acts(task, state, party)
        after = [self._after(task, state, code) for code in tried]
        going = [one for one in after if not one.over]
        if going:
            view = view_of(going, 1 - party)
            answers = self.partner.choose(task, 1 - party, view, [None] * len(going))
            for one, answer in zip(going, answers.tolist()):
                task.apply(one, answer)
        values = [
            task.points(one)[party] if one.over else self._best(task, one, party, known)[0]
            for one in after
        ]
        place = int(np.argmax(values))
        known[key] = values[place], tried[place]
        return known[key]

    def _after(self, task: Bargain, state: BargainState, code: int) -> BargainState:
        then = state.copy()
        task.apply(then, code)
        return then

    def _key(self, task: Bargain, state: BargainState, party: int) -> tuple[int, ...]:
        """Whatever the rest of the dialogue depends on."""
        other = 1 - party
        offered = state.open if state.owner == other else NONE
        heard: tuple[int, ...] = ()
        if self.partner.remembers:
            worth = task.game.points[other][state.user if other else state.system]
            heard = tuple(
                NONE if offer == NONE else int(worth[offer])
                for offer in (state.first[party], state.last[party])
            )
        standing = state.open if state.owner == party else NONE
        return party, state.system, state.user, state.turns, offered, standing, *heard

    def _acts(self, task: Bargain, state: BargainState, party: int) -> list[int]:
        """The acts that are tried, those that end the dialogue first."""
        game = task.game
        worth = game.points[0][state.system], game.points[1][state.user]
        mine, other = worth[party], worth[1 - party]
        outcomes = game.outcome[party][task.table(state, party)].tolist()
        best: dict[int, int] = {}
        for code, outcome in enumerate(outcomes):
            if outcome != NONE:
                points = int(other[outcome])
                held = best.setdefault(points, code)
                if mine[outcome] > mine[outcomes[held]]:
                    best[points] = code
        theirs = state.owner == 1 - party and state.open != NONE
        ending = [ACCEPT, LEAVE] if theirs else [LEAVE]
        waiting = [REJECT, TELL, ASK] if theirs else [TELL, ASK]
        return [
            *(game.size + act for act in ending),
            *best.values(),
            *(game.size + act for act in waiting),
        ]
