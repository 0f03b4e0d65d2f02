"""The user's goal and both parties' utterances, read for `Findings.talk`."""

from collections.abc import Iterator
from typing import Any

from dialgym.tasks.base import SYSTEM, USER
from dialgym.tasks.findings import (
    ASK,
    BYE,
    GREETING,
    MISPLACED,
    MORE,
    NOTHING,
    OFFER,
    OTHER,
    TELL,
    THANKS,
    GoalTalk,
    Reading,
)
from dialgym.tasks.multiwoz.ontology import BOOKING, DOMAINS, GENERAL, SHORT_NAMES, act_domain
from dialgym.tasks.multiwoz.types import ASKED, NONE, Acts, DialogueAct, MultiWOZGoal

KINDS = {
    "Inform": TELL, "Request": ASK, "Select": ASK, "Recommend": OFFER, "OfferBook": OFFER,
    "OfferBooked": OFFER, "Book": OFFER, "NoOffer": NOTHING, "NoBook": NOTHING, "bye": BYE,
    "thank": THANKS, "greet": GREETING, "reqmore": MORE, "welcome": THANKS,
}  # fmt: skip
"""By intents of acts."""
UNSTATED = ("Choice", "Arrive", "Leave")
"""Slots in which the system states what may differ from a wish: numbers of rows, and times that are
early or late enough."""
REFERENCE = "Ref"


def talk_of(task: Any, goal: MultiWOZGoal, lines: Any) -> GoalTalk:
    """The goal, and readings of what the user has heard and said, its note aside."""
    wishes: dict[str, frozenset[str]] = {}
    requests, booked = set(), set()
    for domain, wanted in goal.domains.items():
        for part in (wanted.info, wanted.fail_info, wanted.book, wanted.fail_book):
            for name, value in part.items():
                slot = _slot(domain, name)
                wishes[slot] = wishes.get(slot, frozenset()) | {value}
        requests |= {_slot(domain, name) for name in wanted.requests}
        booked |= {f"{act_domain(domain)} {REFERENCE}"} if wanted.book else set()
    return GoalTalk(wishes, requests, requests | booked, [*_readings(task, lines)])


def _slot(domain: str, name: str) -> str:
    return f"{act_domain(domain)} {SHORT_NAMES[domain][name]}"


def _readings(task: Any, lines: Any) -> Iterator[Reading]:
    """Readings in order; acts about a booking are about the domain that was named last."""
    domain = ""
    for speaker, text, _ in lines:
        acts = task.meant(text, speaker)
        named = [act.domain for act in acts if act.domain.lower() in DOMAINS]
        domain = named[-1] if named else domain
        if acts or speaker == SYSTEM:
            yield _reading(acts, speaker, domain)
        else:
            misplaced = bool(task.meant(text, SYSTEM))
            yield Reading(frozenset((MISPLACED,)) if misplaced else frozenset())


def _reading(acts: Acts, speaker: str, domain: str) -> Reading:
    told, asked = list[tuple[str, str]](), list[str]()
    kinds = {KINDS.get(act.intent, OTHER) for act in acts}
    for act in acts:
        about = domain if act.domain == BOOKING else act.domain
        slot = f"{about} {act.slot}"
        if about == GENERAL or act.slot == NONE or act.intent == "Select":
            continue
        if act.value == ASKED:
            asked.append(slot)
        elif not _is_unstated(act, speaker):
            told.append((slot, act.value))
    if speaker == SYSTEM and any(slot.endswith(" Name") for slot, _ in told):
        kinds.add(OFFER)
    return Reading(frozenset(kinds), told, asked)


def _is_unstated(act: DialogueAct, speaker: str) -> bool:
    """True where a value says nothing about a wish: a place that was talked about before."""
    if speaker == USER:
        return act.domain == "Taxi" and act.value.removeprefix("the ") in DOMAINS
    return act.slot in UNSTATED and act.intent != "Request"
