"""The user's check of a system act against its goal: accept, correct it, or ask back."""

from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np

from dialgym.language.acts import Act, SlotValue
from dialgym.tasks.slot_filling.domain.ontology import DONTCARE, NAME, NONE, TYPE, Ontology
from dialgym.tasks.slot_filling.user.state import SlotFillingUserState

BYE, AFFIRM, NEGATE, REQALTS = Act("bye"), Act("affirm"), Act("negate"), Act("reqalts")
T = TypeVar("T")


@dataclass(frozen=True)
class Slots:
    """Kinds of slots, as sets."""

    ontology: Ontology

    @cached_property
    def asked(self) -> frozenset[str]:
        """Those that the system asks for."""
        return frozenset(self.ontology.system_requestable)

    @cached_property
    def only_user(self) -> frozenset[str]:
        """Those that only the user asks for."""
        return frozenset(self.ontology.user_requests)

    @cached_property
    def only_told(self) -> frozenset[str]:
        """Those that nobody can constrain."""
        return frozenset(self.ontology.requestable).difference(self.ontology.informable)

    @cached_property
    def type(self) -> Act:
        """The user's opening."""
        return Act("inform", (SlotValue(TYPE, self.ontology.type),))


def choose(options: list[T], rng: np.random.Generator) -> T:
    """One of the options, all equally likely."""
    return options[int(rng.random() * len(options))]


def fits(constraint: SlotValue, said: SlotValue) -> bool:
    """Return True if a constraint admits what is said, which must be the more specific of both."""
    if constraint.slot != said.slot:
        return True
    same = constraint.value == said.value
    if not constraint.negated:
        free = constraint.value == DONTCARE
        return not (free or same) if said.negated else free or same
    return said.negated or not (same or said.value == DONTCARE)


def accepts(
    user: SlotFillingUserState, act: Act, slots: Slots, rng: np.random.Generator, confirming: bool
) -> bool:
    """Return True if the user has nothing to object; if it has, its answer is on the agenda.

    `confirming` acts are not answered by a question about what they leave out.
    """
    none = any(item.slot == NAME and item.value == NONE for item in act.items)
    telling = any(item.slot in slots.only_told for item in act.items)
    unsaid = [] if none else _unsaid(user, act)
    asking = False
    for item in act.items:
        constrained = user.constrains(item.slot)
        if not constrained and item.slot in slots.only_user:
            continue
        wrong = _conflicts(user, act, item, none, telling) if constrained else False
        if wrong is None:
            continue
        if wrong:
            _object(user, item, unsaid, rng)
            return False
        if none:
            user.told_none = True
        elif unsaid and not confirming and not asking:
            asking = rng.random() < user.probabilities["confirm_unsaid"]
    if asking:
        user.agenda.append(_confirm(unsaid, rng))
        user.take_answers({item.slot: item.value for item in act.items if not item.negated})
    return not asking


def _unsaid(user: SlotFillingUserState, act: Act) -> list[SlotValue]:
    """The constraints that the act does not repeat."""
    return [
        item
        for item in user.constraints
        if item.value not in (DONTCARE, NONE) and not _repeated(user, act, item.slot)
    ]


def _repeated(user: SlotFillingUserState, act: Act, slot: str) -> bool:
    if SlotValue(slot, user.wanted(slot)) in act.items:
        return True
    unwanted = user.unwanted(slot)
    return bool(unwanted) and act.mentions(slot) and [act.value(slot)] != unwanted


def _conflicts(
    user: SlotFillingUserState, act: Act, item: SlotValue, none: bool, telling: bool
) -> bool | None:
    """Return True if an item on a constrained slot is wrong; None where it is not looked at."""
    slot, wanted = item.slot, user.wanted(item.slot)
    said = [other for other in act.items if other.slot == slot]
    agrees = all(fits(constraint, other) for constraint in user.constraints for other in said)
    wrong = False
    if not agrees and user.unwanted(slot):
        if none and slot == NAME:
            user.constraints = [c for c in user.constraints if not (c.slot == NAME and c.negated)]
        else:
            wrong = True
    if slot == NAME and not telling and not wrong:
        return None  # another row is welcome
    if not agrees and wanted is not None:
        wrong = wrong or (slot != NAME if none else wanted != DONTCARE)
    return wrong


def _object(
    user: SlotFillingUserState, item: SlotValue, unsaid: list[SlotValue], rng: np.random.Generator
) -> None:
    """Hang up, the sooner the less patient; or correct the item; or ask about something else."""
    if rng.random() < (1 - user.patience / user.full_patience) ** 2:
        user.agenda = [BYE]
        return
    if unsaid and rng.random() < user.probabilities["overrule_correction"]:
        user.agenda.append(_confirm(unsaid, rng))
    else:
        user.agenda.append(_correction(user, item, rng))
    user.forget_answers()


def _confirm(unsaid: list[SlotValue], rng: np.random.Generator) -> Act:
    item = choose(unsaid, rng)
    return Act("confirm", (SlotValue(item.slot, item.value),))


def _correction(user: SlotFillingUserState, item: SlotValue, rng: np.random.Generator) -> Act:
    if user.unwanted(item.slot):
        return REQALTS
    right = SlotValue(item.slot, user.wanted(item.slot) or DONTCARE)
    draw = rng.random() - user.probabilities["correct_by_negate"]
    if draw < 0:
        return Act("negate", (right,))
    if draw < user.probabilities["correct_by_deny"]:
        return Act("deny", (SlotValue(item.slot, item.value), right))
    return Act("inform", (right,))
