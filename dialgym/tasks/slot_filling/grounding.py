"""What the user checks before it goes on: does the system's act fit its goal?"""

from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np

from dialgym.language.acts import Act, Item
from dialgym.tasks.slot_filling.ontology import DONTCARE, NAME, NONE, TYPE, Ontology
from dialgym.tasks.slot_filling.types import Mind

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
        return Act("inform", (Item(TYPE, self.ontology.type),))


def choose(options: list[T], rng: np.random.Generator) -> T:
    """One of the options, all equally likely."""
    return options[int(rng.random() * len(options))]


def fits(constraint: Item, said: Item) -> bool:
    """Whether a constraint admits what is said, which must be the more specific of both."""
    if constraint.slot != said.slot:
        return True
    same = constraint.value == said.value
    if not constraint.negated:
        free = constraint.value == DONTCARE
        return not (free or same) if said.negated else free or same
    return said.negated or not (same or said.value == DONTCARE)


def accepts(me: Mind, act: Act, slots: Slots, rng: np.random.Generator, confirming: bool) -> bool:
    """Whether the user has nothing to object; if it has, its answer is on the agenda.

    `confirming` acts are not answered by a question about what they leave out.
    """
    none = any(item.slot == NAME and item.value == NONE for item in act.items)
    telling = any(item.slot in slots.only_told for item in act.items)
    unsaid = [] if none else _unsaid(me, act)
    asking = False
    for item in act.items:
        constrained = me.constrains(item.slot)
        if not constrained and item.slot in slots.only_user:
            continue
        wrong = _conflicts(me, act, item, none, telling) if constrained else False
        if wrong is None:
            continue
        if wrong:
            _object(me, item, unsaid, rng)
            return False
        if none:
            me.told_none = True
        elif unsaid and not confirming and not asking:
            asking = rng.random() < me.chances["confirm_unsaid"]
    if asking:
        me.agenda.append(_confirm(unsaid, rng))
        me.requests.update({item.slot: item.value for item in act.items if not item.negated})
    return not asking


def _unsaid(me: Mind, act: Act) -> list[Item]:
    """The constraints that the act does not repeat."""
    return [
        item
        for item in me.constraints
        if item.value not in (DONTCARE, NONE) and not _repeated(me, act, item.slot)
    ]


def _repeated(me: Mind, act: Act, slot: str) -> bool:
    if Item(slot, me.wanted(slot)) in act.items:
        return True
    unwanted = me.unwanted(slot)
    return bool(unwanted) and act.mentions(slot) and [act.value(slot)] != unwanted


def _conflicts(me: Mind, act: Act, item: Item, none: bool, telling: bool) -> bool | None:
    """Whether an item on a constrained slot is wrong; None where it is not looked at."""
    slot, wanted = item.slot, me.wanted(item.slot)
    said = [other for other in act.items if other.slot == slot]
    agrees = all(fits(constraint, other) for constraint in me.constraints for other in said)
    wrong = False
    if not agrees and me.unwanted(slot):
        if none and slot == NAME:
            me.constraints = [c for c in me.constraints if not (c.slot == NAME and c.negated)]
        else:
            wrong = True
    if slot == NAME and not telling and not wrong:
        return None  # another row is welcome
    if not agrees and wanted is not None:
        wrong = wrong or (slot != NAME if none else wanted != DONTCARE)
    return wrong


def _object(me: Mind, item: Item, unsaid: list[Item], rng: np.random.Generator) -> None:
    """Hang up, the sooner the less patient; or correct the item; or ask about something else."""
    if rng.random() < (1 - me.patience / me.full_patience) ** 2:
        me.agenda = [BYE]
        return
    if unsaid and rng.random() < me.chances["overrule_correction"]:
        me.agenda.append(_confirm(unsaid, rng))
    else:
        me.agenda.append(_correction(me, item, rng))
    me.forget_answers()


def _confirm(unsaid: list[Item], rng: np.random.Generator) -> Act:
    item = choose(unsaid, rng)
    return Act("confirm", (Item(item.slot, item.value),))


def _correction(me: Mind, item: Item, rng: np.random.Generator) -> Act:
    if me.unwanted(item.slot):
        return REQALTS
    right = Item(item.slot, me.wanted(item.slot) or DONTCARE)
    draw = rng.random() - me.chances["correct_by_negate"]
    if draw < 0:
        return Act("negate", (right,))
    if draw < me.chances["correct_by_deny"]:
        return Act("deny", (Item(item.slot, item.value), right))
    return Act("inform", (right,))
