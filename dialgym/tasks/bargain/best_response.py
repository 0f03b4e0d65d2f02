"""The best response to a deterministic negotiator, by dynamic programming over what is known."""

from collections.abc import Sequence
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
Belief = Sequence[BargainState]
"""Dialogues that a party cannot tell apart, all as likely; one where it is told everything."""
MOST = 100_000
"""Beliefs that are remembered, and looked into at least before a search is given up."""


class ResponseSearch:
    """Searches all that can be said to a negotiator that answers by the points of offers.

    Answers part a belief into those that they leave. Points are sums over a belief, whole numbers,
    so that values are exact. Of the proposals that give the negotiator the same points, whatever it
    may be, only the best one for the searching party is tried: it does the same after each of them.

    Args:
        partner: a `policies.Negotiator` that draws nothing.
        most: see `MOST`.
    """

    def __init__(self, partner: Any, most: int = MOST) -> None:
        self.partner, self.most = partner, most
        self._found = PerTask()

    def best(self, task: Bargain, belief: Belief) -> Found:
        """Points, summed over the belief, and act of the party whose turn it is.

        Args:
            task: the rules.
            belief: dialogues that are not over.

        Raises:
            ValueError: there are too many beliefs to look into.
        """
        return self._best(task, _bare(belief), int(belief[0].waiting), self._known(task))

    def belief(self, task: Bargain, state: BargainState, party: int) -> list[BargainState]:
        """The dialogues that a party cannot tell apart, if it knows its partner.

        One for each profile of the other party by which the partner would have said what it has
        said; where it would have by none, as somebody else plays, one for each that can be.
        """
        name = task.parties[party]
        every = task.suppositions(task.begun(state), name)
        for at, line in enumerate(state.lines):
            code = task.read(every[0], line.text)
            if at % 2 != party:
                said = _said(self.partner, task, every, 1 - party)
                every = [one for one, own in zip(every, said) if own == code]
                if not every:
                    return task.suppositions(state, name)
            for one in every:
                task.apply(one, code)
        return every

    def value(self, task: Bargain, belief: Belief, party: int) -> int:
        """Points that a party can still have, summed over a belief; whoever is to speak."""
        if int(belief[0].waiting) == party:
            return self.best(task, belief)[0]
        return self._follow(task, [_bare(belief)], party, self._known(task))[0]

    def values(self, task: Bargain, belief: Belief, codes: Sequence[int]) -> list[int]:
        """Points of each act, summed over the belief; see `best`."""
        return self._values(task, _bare(belief), codes, int(belief[0].waiting), self._known(task))

    def _known(self, task: Bargain) -> dict[Any, Found]:
        """Results so far of the game and as many turns; forgotten before a search if too many."""
        by_turns: dict[int, dict[Any, Found]] = self._found.setdefault(task.game, {})
        if len(by_turns.get(task.turns, ())) > self.most:
            del by_turns[task.turns]
        return by_turns.setdefault(task.turns, {})

    def _best(self, task: Bargain, belief: Belief, party: int, known: dict[Any, Found]) -> Found:
        key = self._key(task, belief, party)
        if key in known:
            return known[key]
        if len(known) > 2 * self.most:
            raise ValueError(
                f"best response in {task.name}: expected at most {self.most:,} beliefs; there are "
                "more. Take fewer turns, or 'best-response', which knows the values of both."
            )
        tried = self._acts(task, belief, party)
        values = self._values(task, belief, tried, party, known)
        place = int(np.argmax(values))
        known[key] = values[place], tried[place]
        return known[key]

    def _values(
        self,
        task: Bargain,
        belief: Belief,
        codes: Sequence[int],
        party: int,
        known: dict[Any, Found],
    ) -> list[int]:
        after = [[_after(task, state, code) for state in belief] for code in codes]
        return self._follow(task, after, party, known)

    def _follow(
        self, task: Bargain, rows: list[list[BargainState]], party: int, known: dict[Any, Found]
    ) -> list[int]:
        """Points of beliefs in which the partner is to answer, unless a dialogue is over."""
        going = [one for row in rows for one in row if not one.over]
        answers = iter(_said(self.partner, task, going, 1 - party))
        values = []
        for row in rows:
            value, parts = 0, dict[int, list[BargainState]]()
            for one in row:
                answer = NONE if one.over else next(answers)
                if answer != NONE:
                    task.apply(one, answer)
                if one.over:
                    value += task.points(one)[party]
                else:
                    parts.setdefault(answer, []).append(one)
            values.append(value + sum(self._best(task, p, party, known)[0] for p in parts.values()))
        return values

    def _key(self, task: Bargain, belief: Belief, party: int) -> tuple[Any, ...]:
        """Whatever the rest of the dialogue depends on."""
        state, other = belief[0], 1 - party
        offered = state.open if state.owner == other else NONE
        standing = state.open if state.owner == party else NONE
        own = state.user if party else state.system
        supposed = tuple(
            (one.system if party else one.user, *self.partner.recalls(task, other, one))
            for one in belief
        )
        return party, own, state.turns, offered, standing, supposed

    def _acts(self, task: Bargain, belief: Belief, party: int) -> list[int]:
        """The acts that are tried, those that end the dialogue first."""
        game, state = task.game, belief[0]
        profiles = [one.system if party else one.user for one in belief]
        mine = game.points[party][state.user if party else state.system]
        other = game.points[1 - party][profiles].T.tolist()  # (G, n)
        outcomes = game.outcome[party][task.table(state, party)].tolist()
        best: dict[tuple[int, ...], int] = {}
        for code, outcome in enumerate(outcomes):
            if outcome != NONE:
                points = tuple(other[outcome])
                held = best.setdefault(points, code)
                if mine[outcome] > mine[outcomes[held]]:
                    best[points] = code
        theirs = state.owner == 1 - party and state.open != NONE
        ending = [ACCEPT, LEAVE] if theirs else [LEAVE]
        kinds = range(len(game.kinds) if self.partner.listens else 1)
        waiting = [*([REJECT] if theirs else []), *(TELL + kind for kind in kinds), ASK]
        return [
            *(game.size + act for act in ending),
            *best.values(),
            *(game.size + act for act in waiting),
        ]


def _after(task: Bargain, state: BargainState, code: int) -> BargainState:
    then = state.copy()
    task.apply(then, code)
    return then


def _said(partner: Any, task: Bargain, states: list[BargainState], party: int) -> list[int]:
    """The acts of who plays a party, which draws nothing; none where there are no dialogues."""
    if not states:
        return []
    codes: list[int] = partner.choose(
        task, party, view_of(states, party), [None] * len(states)
    ).tolist()
    return codes


def _bare(belief: Belief) -> list[BargainState]:
    """Copies without lines."""
    copies = [state.copy() for state in belief]
    for copy in copies:
        copy.lines = []
    return copies
