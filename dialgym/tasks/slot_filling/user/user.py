"""The agenda-based user: begins with a goal, hears an act, answers with one."""

import numpy as np

from dialgym.language.acts import Act, SlotValue
from dialgym.tasks.slot_filling.domain.goals import SlotFillingGoal
from dialgym.tasks.slot_filling.domain.ontology import DONTCARE, NAME, Ontology
from dialgym.tasks.slot_filling.user.grounding import BYE, REQALTS, Slots
from dialgym.tasks.slot_filling.user.reactions import REACTIONS, forget, on_null
from dialgym.tasks.slot_filling.user.state import SlotFillingUserState, SlotUserBehaviour

Generator = np.random.Generator
_PLAIN = ("thankyou", "silence", "repeat", "ack", "deny", "confirm")
_OPEN = ("inform", "negate", "hello", "affirm")
LEAVE = 0.85
"""Probability that the user leaves once it has all it wants and its agenda is empty."""


class SlotFillingUser:
    """Plays the user; a `SlotFillingUserState` is all that changes.

    Args:
        ontology: the domain's slots.
        behaviour: how it behaves.
    """

    def __init__(self, ontology: Ontology, behaviour: SlotUserBehaviour) -> None:
        self.slots, self.behaviour = Slots(ontology), behaviour

    def begin(self, goal: SlotFillingGoal, rng: Generator) -> SlotFillingUserState:
        """A user with a goal: it wants to tell the type and each constraint, and to leave."""
        probabilities, patience = self.behaviour.draw(rng)
        items = [SlotValue(slot, value) for slot, value in goal.constraints.items()]
        informs = [Act("inform", (item,)) for item in reversed(items)]
        used = {slot: frozenset((value,)) for slot, value in goal.constraints.items()}
        agenda = [BYE, *informs, self.slots.type]
        return SlotFillingUserState(
            items, dict.fromkeys(goal.requests), agenda, probabilities, patience, patience, used
        )

    def hear(self, user: SlotFillingUserState, act: Act, rng: Generator) -> None:
        """Take in an act of the system; changes `user`."""
        if act.type == "null" or (user.said is not None and act.same(user.heard)):
            user.patience -= 1
        if user.patience < 1:
            user.agenda = [BYE]
            return
        user.heard = act
        if not user.agenda and _content(user) and act.type != "reqmore" and rng.random() < LEAVE:
            user.agenda = [BYE]
            return
        REACTIONS.get(act.type, on_null)(user, act, self.slots, rng)

    def answer(self, user: SlotFillingUserState, rng: Generator) -> Act:
        """The user's next act; changes `user`."""
        act = user.agenda.pop() if user.agenda else BYE
        if any(item.negated for item in act.items):
            act = REQALTS
        _drop_said(user, act)
        if act.type not in _PLAIN and (user.heard is None or user.heard.type != "reqmore"):
            act = user.repeatable = _plain(_join(user, _shorten(user, act, rng), rng))
        else:
            act = _plain(act)
        user.said = act
        return act


def _content(user: SlotFillingUserState) -> bool:
    known = user.requests.get(NAME) is not None and not user.open_requests()
    return not user.constraints or user.told_none or known


def _drop_said(user: SlotFillingUserState, act: Act) -> None:
    """Nothing is told twice."""
    if act.type in ("inform", "confirm", "affirm", "negate"):
        for item in act.items:
            forget(user, item.slot)


def _shorten(user: SlotFillingUserState, act: Act, rng: Generator) -> Act:
    """Leave out the slot that was asked for, or name the row that is asked about."""
    asked = user.heard is not None and user.heard.type in ("request", "select")
    if act.type == "inform" and asked and act.items and act.items[0].value == DONTCARE:
        if rng.random() < user.probabilities["omit_slot"]:
            return Act("inform", (SlotValue("", DONTCARE), *act.items[1:]))
    elif act.type == "request" and len(act.items) == 1:
        name = user.requests.get(NAME)
        if name is not None and rng.random() < user.probabilities["name_in_request"]:
            return Act("request", (*act.items, SlotValue(NAME, name)))
    return act


def _join(user: SlotFillingUserState, act: Act, rng: Generator) -> Act:
    """Say what comes next on the agenda in the same breath."""
    joins = ("inform", "request") if act.type == "hello" else ("inform",)
    if act.type not in _OPEN:
        return act
    while user.agenda and user.agenda[-1].type in joins:
        if rng.random() >= user.probabilities["combine_informs"]:
            break
        act = Act(act.type, act.items + user.agenda.pop().items)
    return act


def _plain(act: Act) -> Act:
    """Without a request for the name: who does not know it can only go on telling."""
    if act.type != "request" or SlotValue(NAME) not in act.items:
        return act
    return Act("inform", tuple([item for item in act.items if item != SlotValue(NAME)]))
