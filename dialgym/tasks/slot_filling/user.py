"""The simulated user: a goal, and an agenda of what to say about it (Schatzmann et al. 2007)."""

import numpy as np

from dialgym.language.acts import Act, Item
from dialgym.tasks.slot_filling.behaviour import Behaviour
from dialgym.tasks.slot_filling.goals import Goal
from dialgym.tasks.slot_filling.grounding import BYE, REQALTS, Slots
from dialgym.tasks.slot_filling.ontology import DONTCARE, NAME, Ontology
from dialgym.tasks.slot_filling.reactions import REACTIONS, on_null
from dialgym.tasks.slot_filling.types import Mind
from dialgym.tasks.slot_filling.venues import forget

Generator = np.random.Generator
_PLAIN = ("thankyou", "silence", "repeat", "ack", "deny", "confirm")
_OPEN = ("inform", "negate", "hello", "affirm")
LEAVE = 0.85
"""How likely the user leaves once it has all it wants and nothing is on its agenda."""


class AgendaUser:
    """Plays the user; a `Mind` is all that changes.

    Args:
        ontology: the domain's slots.
        behaviour: how it behaves.
    """

    def __init__(self, ontology: Ontology, behaviour: Behaviour) -> None:
        self.slots, self.behaviour = Slots(ontology), behaviour

    def begin(self, goal: Goal, rng: Generator) -> Mind:
        """A user with a goal: it wants to tell the type and each constraint, and to leave."""
        chances, patience = self.behaviour.draw(rng)
        items = [Item(slot, value) for slot, value in goal.constraints.items()]
        informs = [Act("inform", (item,)) for item in reversed(items)]
        used = {slot: frozenset((value,)) for slot, value in goal.constraints.items()}
        agenda = [BYE, *informs, self.slots.type]
        return Mind(items, dict.fromkeys(goal.requests), agenda, chances, patience, patience, used)

    def hear(self, me: Mind, act: Act, rng: Generator) -> None:
        """Take in an act of the system; changes `me`."""
        if act.type == "null" or (me.said is not None and act.same(me.heard)):
            me.patience -= 1
        if me.patience < 1:
            me.agenda = [BYE]
            return
        me.heard = act
        if not me.agenda and _content(me) and act.type != "reqmore" and rng.random() < LEAVE:
            me.agenda = [BYE]
            return
        REACTIONS.get(act.type, on_null)(me, act, self.slots, rng)

    def answer(self, me: Mind, rng: Generator) -> Act:
        """What the user says next; changes `me`."""
        act = me.agenda.pop() if me.agenda else BYE
        if any(item.negated for item in act.items):
            act = REQALTS
        _drop_said(me, act)
        if act.type not in _PLAIN and (me.heard is None or me.heard.type != "reqmore"):
            act = me.repeatable = _plain(_join(me, _shorten(me, act, rng), rng))
        else:
            act = _plain(act)
        me.said = act
        return act


def _content(me: Mind) -> bool:
    known = me.requests.get(NAME) is not None and not me.open_requests()
    return not me.constraints or me.told_none or known


def _drop_said(me: Mind, act: Act) -> None:
    """Nothing is told twice."""
    if act.type in ("inform", "confirm", "affirm", "negate"):
        for item in act.items:
            forget(me, item.slot)


def _shorten(me: Mind, act: Act, rng: Generator) -> Act:
    """Leave out the slot that was asked for, or name the row that is asked about."""
    asked = me.heard is not None and me.heard.type in ("request", "select")
    if act.type == "inform" and asked and act.items and act.items[0].value == DONTCARE:
        if rng.random() < me.chances["omit_slot"]:
            return Act("inform", (Item("", DONTCARE), *act.items[1:]))
    elif act.type == "request" and len(act.items) == 1:
        name = me.requests.get(NAME)
        if name is not None and rng.random() < me.chances["name_in_request"]:
            return Act("request", (*act.items, Item(NAME, name)))
    return act


def _join(me: Mind, act: Act, rng: Generator) -> Act:
    """Say what comes next on the agenda in the same breath."""
    joins = ("inform", "request") if act.type == "hello" else ("inform",)
    if act.type not in _OPEN:
        return act
    while me.agenda and me.agenda[-1].type in joins:
        if rng.random() >= me.chances["combine_informs"]:
            break
        act = Act(act.type, act.items + me.agenda.pop().items)
    return act


def _plain(act: Act) -> Act:
    """Without a request for the name: who does not know it can only go on telling."""
    if act.type != "request" or Item(NAME) not in act.items:
        return act
    return Act("inform", tuple([item for item in act.items if item != Item(NAME)]))
