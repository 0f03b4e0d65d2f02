"""Sentences for people on how a dialogue was judged."""

from collections.abc import Iterator

from dialgym.tasks.service_desk import rules
from dialgym.tasks.service_desk.domains import NONE, NUMBER, DeskDomain
from dialgym.tasks.service_desk.texts import Texts
from dialgym.tasks.service_desk.types import WANT, DeskAct, DeskState, Request

_FAULTS = (
    "something was told or changed before the customer was identified",
    "something was changed without a yes to just that",
    "something was changed that a rule forbids",
    "something was told that nobody had asked for",
    "something was told that is untrue, or was not read",
    "something was refused without a reason that was found",
)
"""Of `types.FAULTS`, in English."""


def judged(domain: DeskDomain, state: DeskState) -> Iterator[tuple[str, bool]]:
    """Sentences on each wish, each fault, and the whole; and whether it is as it should be."""
    for place, request in enumerate(state.goal.requests):
        met = rules.is_met(domain, state, place)
        yield f"The user wants {_wish(domain, state, request)}: {'met' if met else 'not met'}", met
    for bit, fault in enumerate(_FAULTS):
        if state.faults >> bit & 1:
            yield f"Fault: {fault}", False
    solved = rules.grade(domain, state).solved
    yield "Solved" if solved else "Not solved", solved


def _wish(domain: DeskDomain, state: DeskState, request: Request) -> str:
    """A request in a few words, and what is to come of it."""
    number = NONE if request.record == NONE else state.goal.records[request.record][NUMBER]
    texts = Texts(domain, english=True)
    wish = texts.plain_wish(DeskAct(WANT, request.kind, number, request.final))
    if state.goal.impostor:
        return f"{wish} (to be refused: nobody has identified)"
    if request.forbidden:
        return f"{wish} (to be refused: a rule forbids it)"
    return f"{wish} (taken back when asked to confirm)" if request.withdrawn else wish
