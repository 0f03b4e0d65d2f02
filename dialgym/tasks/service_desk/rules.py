"""The rules of a service desk over acts: what they change, what is a fault, what solves a goal.

A function is given the domain, a state, and an act of the party that has the floor. Those of calls
return the record, the bits, or whatever else the tool answers with; None is no such thing.
"""

from typing import NamedTuple

from dialgym.tasks.service_desk.domains import (
    AIRPLANE,
    DATA,
    NAME,
    NONE,
    NUMBER,
    READ_SCREEN,
    RESTART,
    DeskDomain,
)
from dialgym.tasks.service_desk.types import (
    ASK,
    BYE,
    CHANGE,
    CLAIM,
    CODE,
    CONFIRM,
    CONSENT,
    FAREWELL,
    FIND,
    FORBIDDEN,
    GET,
    IDENTIFY,
    IDENTITY,
    LEAVE,
    NAMED,
    NO,
    NOTHING,
    PLEASE,
    PRIVACY,
    REFUSAL,
    REFUSE,
    SCREEN,
    TELL,
    TRIES,
    UNTRUE,
    USE,
    WANT,
    WHICH,
    WORKS,
    WRITE,
    YES,
    DeskAct,
    DeskState,
    Goal,
    Request,
    screen_of,
)

USES = 2
"""Utterances of the user in one turn, at most: a use of the device, and words."""


class Grade(NamedTuple):
    """Judgement of a dialogue, or of a part of one: all three make it solved."""

    database: bool  # all records and the device are as they should be in the end
    told: bool  # what the user asked for was told, what is forbidden refused, all wishes heard
    policy: bool  # nothing forbidden was done

    @property
    def solved(self) -> bool:
        return all(self)


def begin(goal: Goal) -> DeskState:
    """The state in which the user is about to speak first."""
    return DeskState(goal, goal.policy, goal.records, goal.device)


def grade(domain: DeskDomain, state: DeskState) -> Grade:
    """Judge a dialogue as it stands, by its end alone but for faults."""
    goal, writes = state.goal, len(domain.writes)
    told = all(
        is_met(domain, state, place)
        for place, request in enumerate(goal.requests)
        if request.kind >= writes or request.forbidden or request.withdrawn or goal.impostor
    )
    same = state.records == goal.end and state.device == WORKS
    return Grade(same, told, not state.faults)


def is_met(domain: DeskDomain, state: DeskState, place: int) -> bool:
    """Tell if a request of the goal has got what it should: a change, news, or a refusal.

    One that the user withdraws when it is asked to confirm must have come to that.
    """
    goal, bit = state.goal, 1 << place
    request = goal.requests[place]
    if request.forbidden or goal.impostor:
        return bool(state.refused & bit)
    if request.record == NONE:
        return state.device == WORKS
    if request.withdrawn:
        return bool(state.changed & bit)
    if request.kind >= len(domain.writes):
        return bool(state.told & bit)
    return state.records[request.record] == goal.end[request.record]


def place_of(state: DeskState, number: int) -> int:
    """The record of a number, or NONE."""
    for place, record in enumerate(state.records):
        if record[NUMBER] == number:
            return place
    return NONE


def desk(domain: DeskDomain, state: DeskState, act: DeskAct, limit: int) -> int | None:
    """Let the desk act.

    Returns:
        Of a call: the customer, the record, or 1; NONE where there is no such thing or it cannot
        be. None of words, after which the user has the floor.
    """
    state.turns += 1
    state.uses = 0
    state.last = act
    op = act.op
    state.understood += op != NONE
    answer = None
    if FIND <= op <= WRITE:
        state.calls += 1
        answer = _CALLS[op](domain, state, act)
    else:
        state.waiting = True
        _speak(domain, state, act)
    state.over = op == BYE or state.turns >= limit
    return answer


def _find(domain: DeskDomain, state: DeskState, act: DeskAct) -> int:
    names = state.goal.names
    state.found = names.index(act.value) if act.value in names else NONE
    if state.found == NONE and act.value == state.name_told:
        state.name_told = NONE
    return state.found


def _identify(domain: DeskDomain, state: DeskState, act: DeskAct) -> int:
    if state.found == NONE:
        return NONE
    if act.value == state.code_told:
        state.code_told = NONE
    if state.goal.codes[state.found] == act.value:
        state.verified = state.found
        return 1
    state.wrong_codes += 1
    return NONE


def _get(domain: DeskDomain, state: DeskState, act: DeskAct) -> int:
    place = place_of(state, act.number)
    if place != NONE:
        state.read |= 1 << place
    return place


def _write(domain: DeskDomain, state: DeskState, act: DeskAct) -> int:
    """Change a record where the database lets it be changed; note what was wrong with that."""
    place = place_of(state, act.number)
    write = domain.writes[act.which]
    value = act.value if write.value == NONE else write.value
    if place == NONE or value == NONE or not domain.possible(act.which, state.records[place]):
        return NONE
    record = state.records[place]
    if state.verified != state.goal.owners[place]:
        state.faults |= IDENTITY
    if act != state.confirmed:
        state.faults |= CONSENT
    if not domain.allows(state.policy, act.which, record):
        state.faults |= FORBIDDEN
    changed = (*record[: write.field], value, *record[write.field + 1 :])
    state.records = (*state.records[:place], changed, *state.records[place + 1 :])
    state.done, state.proposed, state.confirmed = act, NOTHING, NOTHING
    return place


_CALLS = {FIND: _find, IDENTIFY: _identify, GET: _get, WRITE: _write}


def _speak(domain: DeskDomain, state: DeskState, act: DeskAct) -> None:
    op = act.op
    if op == CONFIRM:
        state.proposed, state.confirmed = act._replace(op=WRITE), NOTHING
    elif op == TELL:
        _tell(domain, state, act)
    elif op == REFUSE:
        _refuse(state)
    elif op == PLEASE:
        bit = 1 << act.which
        state.again, state.pleas = bool(state.pleas & bit), state.pleas | bit
        state.screen = NONE
    elif op == ASK:
        known = (state.name_told, state.code_told, state.wish.number & state.wish.name)
        state.repeats += known[act.which] != NONE
    else:
        state.repeats += op == NONE


def _tell(domain: DeskDomain, state: DeskState, act: DeskAct) -> None:
    place, field = place_of(state, act.number), domain.tells[act.which]
    request, asked = _current(state), (len(domain.writes) + act.which, place)
    if request is not None and request[:2] == asked:
        state.answered |= _bit(state.current)
    if place == NONE or not state.read & 1 << place or state.records[place][field] != act.value:
        state.faults |= UNTRUE
        return
    if state.verified != state.goal.owners[place]:
        state.faults |= IDENTITY
        return
    if request is None or request[:2] != asked or not _is_named(state):
        state.faults |= PRIVACY
        return
    state.told |= 1 << state.current


def _refuse(state: DeskState) -> None:
    """Refuse the open wish: for want of a right code, or for a rule that the record fails."""
    request = _current(state)
    if request is None:
        return
    unknown = state.goal.impostor and state.wrong_codes >= TRIES
    owner = state.goal.owners[request.record] if request.record != NONE else NONE
    found = (
        request.forbidden
        and state.verified == owner
        and bool(state.read & 1 << request.record)
        and _is_named(state)
    )
    state.answered |= _bit(state.current)
    if unknown or found:
        state.refused |= 1 << state.current
    else:
        state.faults |= REFUSAL


def _is_named(state: DeskState) -> bool:
    """Tell if the user has said which record the open wish is about."""
    return (state.wish.number, state.wish.name) != (NONE, NONE)


def _current(state: DeskState) -> Request | None:
    return state.goal.requests[state.current] if state.current != NONE else None


def user(domain: DeskDomain, state: DeskState, act: DeskAct) -> int | None:
    """Let the user act; of a use of its device the bits of that, else None."""
    if act.op == WHICH and act.number == act.name:  # of a device: its text names nothing either
        act = NOTHING
    op = act.op
    state.understood += op != NONE
    state.uses += 1
    state.heard = act
    if op == USE:
        _use(state, act.which)
        state.waiting = state.uses < USES
        return screen_of(state.device)
    state.waiting = False
    if op == WANT:
        _want(state, act)
    elif op == NAMED:
        state.name_told = act.value
    elif op == CODE:
        state.code_told = act.value
        state.codes_said += 1
    elif op == WHICH:
        if state.wish.op == WANT:
            state.wish = state.wish._replace(number=act.number, name=act.name)
            _match(state)
    elif op == YES:
        state.confirmed = state.proposed
        if state.proposed.op != NONE:
            state.consented |= _bit(state.current)
    elif op == NO:
        state.proposed = state.confirmed = NOTHING
    elif op in (CHANGE, LEAVE):
        _change(domain, state, act)
    elif op == CLAIM:
        state.claimed |= _bit(state.current)
    elif op == SCREEN:
        state.screen = act.value
    state.over = op == FAREWELL
    return None


def _use(state: DeskState, tool: int) -> None:
    if tool == READ_SCREEN:
        state.shown = screen_of(state.device)
    elif tool == RESTART:
        state.device &= 0b011
    elif tool == AIRPLANE:
        state.device ^= 0b001
    elif tool == DATA:
        state.device ^= 0b010


def _want(state: DeskState, act: DeskAct) -> None:
    """Open a wish, or repeat the open one."""
    if act == state.wish:
        return
    state.wish, state.proposed, state.confirmed = act, NOTHING, NOTHING
    state.current = NONE
    _match(state)


def _match(state: DeskState) -> None:
    """Find the goal's request that the open wish is, if it is one of them; rather a new one."""
    fitting = [
        place
        for place, request in enumerate(state.goal.requests)
        if request.kind == state.wish.which and _means(state, request, state.wish)
    ]
    if state.current not in fitting:
        fresh = [place for place in fitting if not state.voiced >> place & 1]
        state.voiced &= ~_bit(state.current)
        state.current = (fresh or fitting or [NONE])[0]
        state.voiced |= _bit(state.current)


def _means(state: DeskState, request: Request, act: DeskAct) -> bool:
    if request.record == NONE:
        return True
    record = state.records[request.record]
    return act.number in (NONE, record[NUMBER]) and act.name in (NONE, record[NAME])


def _change(domain: DeskDomain, state: DeskState, act: DeskAct) -> None:
    wish = state.wish
    state.changed |= _bit(state.current)
    state.proposed = state.confirmed = NOTHING
    if act.op == LEAVE:
        state.wish = NOTHING
    elif domain.argument(wish.which) is domain.fields[act.which]:
        state.wish = wish._replace(value=act.value)


def _bit(place: int) -> int:
    return 0 if place == NONE else 1 << place
