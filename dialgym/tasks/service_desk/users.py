"""Simulated users: what they say follows from their goal and the dialogue so far, by rules."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from dialgym.simulators import EachReplies
from dialgym.tasks.base import USER
from dialgym.tasks.service_desk.domains import NONE, READ_SCREEN, DeskDomain
from dialgym.tasks.service_desk.types import (
    ASK,
    ASK_CODE,
    ASK_NAME,
    BY_NAME,
    BY_NUMBER,
    CHANGE,
    CLAIM,
    CODE,
    CONFIRM,
    DID,
    FAREWELL,
    LEAVE,
    MORE,
    NAMED,
    NO,
    PARDON,
    PLEASE,
    REFUSE,
    SCREEN,
    TELL,
    USE,
    WANT,
    WHICH,
    WORKS,
    YES,
    DeskAct,
    DeskState,
    Request,
)

Generator = np.random.Generator


class AgendaUser(EachReplies):
    """Asks for one thing after the other, and answers what it is asked, by its goal alone.

    It names a record by number or by what it is, some only when asked; it says yes to what it
    wants, or changes its mind, once; it does with its device what it is asked to, and says so; a
    refusal it takes, or claims once that things are otherwise. After the last thing it leaves.
    """

    honest = True
    patience = NONE
    """Repeated questions, and words that make no sense, after which it leaves; NONE for never."""

    def choose(self, domain: DeskDomain, state: DeskState) -> DeskAct:
        """The act of the user, who has the floor. It draws nothing."""
        if state.heard.op == USE and state.uses:
            tool = state.heard.which
            return DeskAct(SCREEN, value=state.shown) if tool == READ_SCREEN else DeskAct(DID)
        if self.patience != NONE and state.repeats >= self.patience:
            return DeskAct(FAREWELL)
        answer = _ANSWERS.get(state.last.op)
        if state.current == NONE:
            return self._next(state)
        return DeskAct(PARDON) if answer is None else answer(self, domain, state)

    def _next(self, state: DeskState) -> DeskAct:
        """The next wish, or the end."""
        requests = state.goal.requests
        for place, request in enumerate(requests):
            if not state.voiced >> place & 1:
                return self._wish(state, request, request.way in (BY_NUMBER, BY_NAME))
        return DeskAct(FAREWELL)

    def _wish(self, state: DeskState, request: Request, named: bool) -> DeskAct:
        number, name = (request.number, request.name) if named else (NONE, NONE)
        return DeskAct(WANT, request.kind, number, request.value, name)

    def _asked(self, domain: DeskDomain, state: DeskState) -> DeskAct:
        goal = state.goal
        if state.last.which == ASK_NAME:
            return DeskAct(NAMED, value=goal.names[0])
        if state.last.which == ASK_CODE:
            slips = goal.impostor or ((goal.slips or not self.honest) and not state.codes_said)
            return DeskAct(CODE, value=goal.wrong if slips else goal.codes[0])
        request = goal.requests[state.current]
        return DeskAct(WHICH, number=request.number, name=request.name)

    def _confirmed(self, domain: DeskDomain, state: DeskState) -> DeskAct:
        request, proposed = _open(state), state.proposed
        changed = state.changed >> state.current & 1
        if request.record == NONE or (changed and request.withdrawn):
            return DeskAct(NO)
        value = request.final if changed else request.value
        same = proposed.which == request.kind and proposed.value == value
        if not same or request.number not in (NONE, proposed.number):
            return DeskAct(NO)
        if not request.changes or changed:
            return DeskAct(YES)
        if request.withdrawn:
            return DeskAct(LEAVE)
        return DeskAct(CHANGE, domain.writes[request.kind].field, value=request.final)

    def _told(self, domain: DeskDomain, state: DeskState) -> DeskAct:
        return self._next(state) if state.answered >> state.current & 1 else DeskAct(NO)

    def _refused(self, domain: DeskDomain, state: DeskState) -> DeskAct:
        request = _open(state)
        field, value = request.claim
        if not self.honest and field == NONE and request.record != NONE:
            field, value = domain.status, domain.writes[0].needs[0]
        if field != NONE and not state.claimed >> state.current & 1:
            return DeskAct(CLAIM, field, value=value)
        return self._next(state)

    def _anything_else(self, domain: DeskDomain, state: DeskState) -> DeskAct:
        if self._content(domain, state):
            return self._next(state)
        if state.wish.op == WANT:
            return state.wish
        return self._wish(state, _open(state), True)

    def _content(self, domain: DeskDomain, state: DeskState) -> bool:
        """Tell if the open wish has been met, as far as the user knows, or was refused."""
        request, bit = _open(state), 1 << state.current
        if domain.device and request.kind == domain.internet:
            return state.device == WORKS or bool(state.answered & bit)
        withdrawn = bool(state.changed & bit) and request.withdrawn
        return withdrawn or bool((state.answered | state.consented) & bit)

    def _use(self, domain: DeskDomain, state: DeskState) -> DeskAct:
        tool = state.last.which
        if not domain.device:
            return DeskAct(PARDON)
        lies = not self.honest and tool != READ_SCREEN and not state.again
        return DeskAct(DID) if lies else DeskAct(USE, tool)

    def reply(self, task: Any, state: DeskState, rng: Generator) -> str:
        text: str = task.texts.user(self.choose(task.domain, state), rng)
        return text

    def act(self, task: Any, state: DeskState, rng: Generator) -> int:
        """See `dialgym.tasks.ActPolicy`."""
        code: int = task.acts[USER].code(state, self.choose(task.domain, state))
        return code


class ImpatientUser(AgendaUser):
    """Leaves when it is asked for the second time what it has said, or has not understood."""

    patience = 2


class LyingUser(AgendaUser):
    """First says a wrong code, claims after each refusal that things are otherwise, and says first
    that it has done with its device what it has not."""

    honest = False


def _open(state: DeskState) -> Request:
    """The request whose wish is open."""
    return state.goal.requests[state.current]


_ANSWERS: Mapping[int, Callable[[AgendaUser, DeskDomain, DeskState], DeskAct]] = {
    ASK: AgendaUser._asked,
    CONFIRM: AgendaUser._confirmed,
    TELL: AgendaUser._told,
    REFUSE: AgendaUser._refused,
    MORE: AgendaUser._anything_else,
    PLEASE: AgendaUser._use,
}
