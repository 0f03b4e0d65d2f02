"""Acts of the user: what it can say of its goal, and the tools of its device."""

from typing import Any

import numpy as np

from dialgym.tasks.acts import PartyActs
from dialgym.tasks.base import USER
from dialgym.tasks.service_desk import users
from dialgym.tasks.service_desk.domains import DEVICE_TOOLS, NONE
from dialgym.tasks.service_desk.task import ServiceDesk
from dialgym.tasks.service_desk.types import (
    CHANGE,
    CLAIM,
    CODE,
    DID,
    FAREWELL,
    LEAVE,
    NAMED,
    NO,
    PARDON,
    PLEASE,
    SCREEN,
    USE,
    WANT,
    WHICH,
    YES,
    DeskAct,
    DeskState,
)

Generator = np.random.Generator
REQUESTS = 4
"""Most requests of a goal."""
_NAMES = ("name", "code", "wrong code", "which", "yes", "no", "change", "leave it", "claim")
_LAST = ("screen", "done", "pardon", "goodbye")
_OPS = (NAMED, CODE, CODE, WHICH, YES, NO, CHANGE, LEAVE, CLAIM, SCREEN, DID, PARDON, FAREWELL)
_RIGHT, _WRONG = 1, 2
_MINE = len(_OPS)
_ACTS = PLEASE + 1
"""Acts of the desk."""


class CustomerActs(PartyActs):
    """Words of the user about its goal, its wishes by their place, and the tools of its device.

    Observation, from 0 to 1: the last act of the desk, one-hot, and which of them it was; the open
    wish, one-hot; which wishes there are, were told, answered, changed, claimed; what the screen
    showed; the share of the turns.

    Args:
        task: the rules.
    """

    policies = {  # noqa: RUF012
        "agenda": users.AgendaUser,
        "impatient": users.ImpatientUser,
        "lying": users.LyingUser,
        "random": PartyActs.policies["random"],
    }

    def __init__(self, task: ServiceDesk) -> None:
        self.task, self.domain = task, task.domain
        wishes = tuple(f"wish {place + 1}" for place in range(REQUESTS))
        tools = DEVICE_TOOLS if self.domain.device else ()
        self.names = (*_NAMES, *_LAST, *wishes, *tools)
        self.size = _ACTS + 5 + REQUESTS * 6 + 4 + 1

    def act(self, state: DeskState, code: int) -> DeskAct:
        """The act of a code; without an `op` where something is missing."""
        goal = state.goal
        if code >= _MINE + REQUESTS:
            return DeskAct(USE, code - _MINE - REQUESTS)
        if code >= _MINE:
            return self._wish(state, code - _MINE)
        op = _OPS[code]
        request = goal.requests[state.current] if state.current != NONE else None
        if op == NAMED:
            return DeskAct(op, value=goal.names[0])
        if op == CODE:
            wrong = code == _WRONG or goal.impostor
            return DeskAct(op, value=goal.wrong if wrong else goal.codes[0])
        if op == WHICH:
            number, name = (request.number, request.name) if request else (NONE, NONE)
            return (
                DeskAct(op, number=number, name=name)
                if (number, name) != (NONE, NONE)
                else DeskAct()
            )
        if op == CHANGE:
            if not (request and request.changes and request.final != request.value):
                return DeskAct()
            return DeskAct(op, self.domain.writes[request.kind].field, value=request.final)
        if op == CLAIM:
            field, value = request.claim if request else (NONE, NONE)
            return DeskAct(op, field, value=value) if field != NONE else DeskAct()
        if op == SCREEN:
            return DeskAct(op, value=state.shown) if state.shown != NONE else DeskAct()
        return DeskAct(op)

    def _wish(self, state: DeskState, place: int) -> DeskAct:
        goal = state.goal
        if place >= len(goal.requests):
            return DeskAct()
        request = goal.requests[place]
        value = request.final if state.changed >> place & 1 else request.value
        return DeskAct(WANT, request.kind, request.number, value, request.name)

    def code(self, state: DeskState, act: DeskAct) -> int:
        """The code of an act of a scripted user."""
        if act.op == USE:
            return _MINE + REQUESTS + act.which
        if act.op == CODE:
            return _RIGHT if act.value == state.goal.codes[0] else _WRONG
        if act.op != WANT:
            return _OPS.index(act.op)
        fresh = [p for p, r in enumerate(state.goal.requests) if r.kind == act.which]
        unsaid = [place for place in fresh if not state.voiced >> place & 1]
        repeats = state.wish.op == WANT and state.current in fresh and state.wish == act
        return _MINE + (state.current if repeats else (unsaid or fresh)[0])

    def text(self, state: DeskState, action: Any, rng: Generator) -> str:
        act = self.act(state, int(action))
        return self.task.texts.user(act, rng) if act.op != NONE else ""

    def mask(self, state: DeskState) -> np.ndarray:
        mask = [self.act(state, code).op != NONE for code in range(len(self.names))]
        return np.array(mask, bool)

    def observe(self, state: DeskState) -> np.ndarray:
        row = np.zeros(self.size, np.float32)
        last, goal = state.last, state.goal
        if last.op != NONE:
            row[last.op] = 1.0
        if last.which != NONE:
            row[_ACTS + min(last.which, 4)] = 1.0
        at = _ACTS + 5
        for place in range(len(goal.requests)):
            bits = (state.voiced, state.answered, state.changed, state.claimed)
            row[at : at + 6] = (1.0, place == state.current, *(b >> place & 1 for b in bits))
            at += 6
        at = _ACTS + 5 + 6 * REQUESTS
        if state.shown != NONE:
            row[at : at + 4] = (1.0, *(state.shown >> bit & 1 for bit in range(3)))
        row[-1] = state.turns / self.task.turns
        return row

    def read(self, state: DeskState, text: str) -> int:
        """The act that a text is taken for; pardon if it is none of them."""
        act = self.task.reader.read(USER, text, state.last)
        codes = (code for code in range(len(self.names)) if self.act(state, code) == act)
        return next(codes, _OPS.index(PARDON))
