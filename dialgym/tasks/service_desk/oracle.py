"""The best plan of a desk that knows the goal, found by search over acts."""

from collections.abc import Iterator
from heapq import heappop, heappush
from itertools import count
from operator import attrgetter
from typing import Any

import numpy as np

from dialgym.tasks.service_desk import rules
from dialgym.tasks.service_desk.domains import DeskDomain
from dialgym.tasks.service_desk.types import BYE, CONFIRM, PLEASE, TELL, WRITE, DeskState
from dialgym.tasks.service_desk.users import AgendaUser

Generator = np.random.Generator
TURN = 1.0 + 1e-3
"""Cost of words in a search; that of a call is 1/1000, so that no call is made for nothing."""
CALL = 1e-3
KEPT = 200_000
_PASSING = frozenset(
    ("goal", "desk_lines", "user_lines", "turns", "calls", "uses", "understood", "last", "heard")
)
_known = attrgetter(*(name for name in DeskState.__slots__ if name not in _PASSING))
_USER = AgendaUser()


class Oracle:
    """Serves a goal that it knows (`oracle`) in the fewest turns, wish by wish.

    All acts are such as the desk's own masks allow: arguments are what it has heard and seen. The
    plan is one for the agenda user; where another user leaves it, it plans again.
    """

    oracle = True

    def __init__(self) -> None:
        self._plans: dict[tuple[Any, ...], int] = {}

    def act(self, task: Any, state: DeskState, rng: Generator) -> int:
        """See `dialgym.tasks.ActPolicy`."""
        acts = task.acts["system"]
        key = key_of(state)
        if key not in self._plans:
            if len(self._plans) >= KEPT:
                self._plans.clear()
            plan = plan_of(acts, state)
            self._plans.update(plan if plan else {key: acts.code_of[BYE, -1, -1]})
        return self._plans[key]

    def reply(self, task: Any, state: DeskState, rng: Generator) -> str:
        text: str = task.acts["system"].text(state, self.act(task, state, rng), rng)
        return text


def key_of(state: DeskState) -> tuple[Any, ...]:
    """The goal, and all that matters to what follows."""
    return (id(state.goal), state.heard, *_known(state))


def plan_of(acts: Any, state: DeskState) -> dict[tuple[Any, ...], int]:
    """Acts by state, up to the next wish or the end; empty where the goal is out of reach.

    The search is Dijkstra's over states, by the words that the user hears; acts that are faults
    are left out.
    """
    domain, numbers = acts.domain, count()
    start = bare(state)
    frontier = [(0.0, next(numbers), start, None)]
    cheapest = {key_of(start): 0.0}
    Node = tuple[DeskState, int, Any]
    while frontier:
        cost, _, reached, path = heappop(frontier)
        if path is not None and _is_next(domain, start, reached):
            return dict(_steps(path))
        if reached.over:
            continue
        for code in _sensible(acts, reached):
            following = after(acts, reached, code)
            key = key_of(following)
            spent = cost + (CALL if following.calls > reached.calls else TURN)
            if following.faults or spent >= cheapest.get(key, np.inf):
                continue
            cheapest[key] = spent
            node: Node = (reached, code, path)
            heappush(frontier, (spent, next(numbers), following, node))  # type: ignore[misc]
    return {}


def _sensible(acts: Any, state: DeskState) -> Iterator[int]:
    """Acts that are allowed, without those that are about another wish than the open one.

    To them a user says no or nothing, and they change nothing that the open wish needs.
    """
    wished, writes = state.wish.which, len(acts.domain.writes)
    for code, allowed in enumerate(acts.allowed(state)):
        op, which, _ = acts.codes[code]
        if not allowed or (op in (WRITE, CONFIRM) and which != wished):
            continue
        if op == TELL and which + writes != wished:
            continue
        if op == PLEASE and wished != acts.domain.internet:
            continue
        yield code


def _steps(path: Any) -> Iterator[tuple[tuple[Any, ...], int]]:
    while path is not None:
        state, code, path = path
        yield key_of(state), code


def bare(state: DeskState) -> DeskState:
    """A copy without what was said."""
    copy = state.copy()
    copy.desk_lines, copy.user_lines = [], []
    return copy


def after(acts: Any, state: DeskState, code: int) -> DeskState:
    """The state after an act of the desk, and the agenda user's answer."""
    domain: DeskDomain = acts.domain
    following = state.copy()
    rules.desk(domain, following, acts.act(following, code), acts.task.turns)
    while following.waiting and not following.over:
        rules.user(domain, following, _USER.choose(domain, following))
    return following


def _is_next(domain: DeskDomain, start: DeskState, state: DeskState) -> bool:
    """Tell if the open wish is met, and the next one was told or the dialogue is over."""
    if state.over:
        return rules.grade(domain, state).solved
    if state.voiced == start.voiced:
        return False
    return all(
        rules.is_met(domain, state, place)
        for place in range(len(state.goal.requests))
        if start.voiced >> place & 1
    )
