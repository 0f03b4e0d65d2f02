"""The user's goal and both parties' utterances, read for `Findings.talk`."""

from typing import Any

from dialgym.language.acts import NULL, Act, SlotValue
from dialgym.tasks.base import SYSTEM, USER
from dialgym.tasks.findings import (
    AGAIN,
    ASK,
    BYE,
    CHECK,
    ELSE,
    GREETING,
    MISPLACED,
    MORE,
    NO,
    NOTHING,
    OFFER,
    OTHER,
    TELL,
    THANKS,
    YES,
    GoalTalk,
    Reading,
)
from dialgym.tasks.slot_filling.domain.ontology import DONTCARE, NAME, NONE, TYPE
from dialgym.tasks.slot_filling.languages import USER_ACTS, read_notation
from dialgym.tasks.slot_filling.types import SlotFillingState

KINDS = {
    "inform": TELL, "request": ASK, "confirm": CHECK, "confreq": CHECK, "select": ASK,
    "affirm": YES, "negate": NO, "deny": NO, "reqalts": ELSE, "reqmore": MORE, "repeat": AGAIN,
    "hello": GREETING, "thankyou": THANKS, "ack": THANKS, "bye": BYE,
}  # fmt: skip
"""By types of acts."""
SYSTEM_ALONE = ("select", "confreq")
"""Acts that no user has."""
UNNAMED = ("", NAME, TYPE)
"""Slots of which a user states no wish: it names rows that it has heard of."""


def talk_of(task: Any, state: SlotFillingState) -> GoalTalk:
    """The goal as it was drawn, and readings of all that the user has heard and said."""
    requests = frozenset(state.goal.requests)
    wishes = {slot: frozenset((value,)) for slot, value in state.goal.constraints.items()}
    readings: list[Reading] = []
    for speaker, text, _ in state.heard_by_user:
        if speaker == USER:
            readings.append(_of_user(task, text, readings[-1] if readings else Reading()))
        else:
            readings.append(_of_system(task, text))
    return GoalTalk(wishes, requests - {NAME}, requests | {NAME}, readings)


def _of_user(task: Any, text: str, before: Reading) -> Reading:
    """A reading of a user's words; what does not matter is what was asked for just before."""
    act = task.language.understand(text, USER) or read_notation(text)
    alone = act is None and _of_system(task, text).kinds
    if alone or (act is not None and act.type in SYSTEM_ALONE):
        return Reading(frozenset((MISPLACED,)))
    if act is None or act.type not in USER_ACTS:
        return Reading()
    items = act.items[-1:] if act.type == "deny" else act.items
    open_slots = before.asked[:1] if SlotValue("", DONTCARE) in items else []
    told = [(slot, DONTCARE) for slot in open_slots] + [
        (item.slot, item.value)
        for item in items
        if item.value is not None and not item.negated and item.slot not in UNNAMED
    ]
    asked = [item.slot for item in items if item.value is None]
    return Reading(_kinds(act, bool(told), bool(asked)), told, asked)


def _of_system(task: Any, text: str) -> Reading:
    act = task.language.understand(text, SYSTEM) or read_notation(text) or NULL
    if act.type == NULL.type:
        return Reading()
    if act.type == "inform" and act.value(NAME) == NONE:
        return Reading(frozenset((NOTHING,)))
    stated = act.type != "select"  # which offers a choice
    told = [
        (item.slot, item.value)
        for item in act.items
        if stated and item.value is not None and not item.negated and item.slot not in ("", TYPE)
    ]
    asked = [item.slot for item in act.items if item.value is None]
    offer = frozenset((OFFER,)) if act.type == "inform" and act.value(NAME) else frozenset()
    return Reading(_kinds(act, False, bool(asked)) | offer, told, asked)


def _kinds(act: Act, told: bool, asked: bool) -> frozenset[str]:
    also = ([TELL] if told else []) + ([ASK] if asked else [])
    return frozenset((KINDS.get(act.type, OTHER), *also))
