"""What the user does about each act of the system, by putting acts on its agenda."""

from collections.abc import Callable, Mapping

import numpy as np

from dialgym.language.acts import Act, Item
from dialgym.tasks.slot_filling.grounding import (
    AFFIRM,
    BYE,
    NEGATE,
    Slots,
    accepts,
    choose,
)
from dialgym.tasks.slot_filling.ontology import DONTCARE, NAME, TYPE
from dialgym.tasks.slot_filling.types import Mind
from dialgym.tasks.slot_filling.venues import on_inform

Generator = np.random.Generator
HELLO = Act("hello")


def on_hello(me: Mind, act: Act, slots: Slots, rng: Generator) -> None:
    if not act.items and rng.random() < me.chances["greet"]:
        me.agenda.append(HELLO)


def on_bye(me: Mind, act: Act, slots: Slots, rng: Generator) -> None:
    me.agenda = [BYE]


def on_null(me: Mind, act: Act, slots: Slots, rng: Generator) -> None:
    me.agenda.append(me.repeatable)


def on_request(me: Mind, act: Act, slots: Slots, rng: Generator) -> None:
    """Ask back, answer from the agenda or the goal, or take it that there is no preference."""
    if not act.items:
        return
    slot = act.items[0].slot
    name, missing = me.requests.get(NAME), me.open_requests()
    if name is not None and missing:
        me.agenda.append(Act("request", (Item(NAME, name), Item(missing[0]))))
    elif slot == TYPE:
        me.agenda.append(slots.type)
    elif slot in slots.only_user:
        me.agenda.append(NEGATE)
    elif planned := [a for a in me.agenda if a.type == "inform" and a.mentions(slot)]:
        me.agenda = [a for a in me.agenda if a not in planned] + planned
    elif me.constrains(slot):
        me.agenda.append(Act("inform", tuple([i for i in me.constraints if i.slot == slot])))
    else:
        _answer_anything(me, slot, rng)


def _answer_anything(me: Mind, slot: str, rng: Generator) -> None:
    draw = rng.random() - me.chances["repeat_constraint"]
    if draw < 0 and me.constraints:
        item = choose(me.constraints, rng)
        me.agenda.append(Act("inform", (Item(item.slot, item.value),)))
    elif draw < me.chances["no_preference"]:
        me.agenda.append(Act("inform", (Item("", DONTCARE),)))
    else:
        me.constraints.append(Item(slot, DONTCARE))
        me.used[slot] = me.used.get(slot, frozenset()) | {DONTCARE}
        me.agenda.append(Act("inform", (Item(slot, DONTCARE),)))


def on_confirm(me: Mind, act: Act, slots: Slots, rng: Generator) -> None:
    """Correct what is wrong, say that a slot does not matter, or affirm."""
    if not accepts(me, act, slots, rng, confirming=True):
        return
    for item in act.items:
        if item.slot != TYPE and item.value != DONTCARE and not me.constrains(item.slot):
            me.agenda.append(Act("negate", (Item(item.slot, DONTCARE),)))
            return
    affirm = AFFIRM
    if me.agenda and me.agenda[-1].type == "inform" and rng.random() < me.chances["combine_affirm"]:
        affirm = Act("affirm", me.agenda.pop().items)
    me.agenda.append(affirm)


def on_select(me: Mind, act: Act, slots: Slots, rng: Generator) -> None:
    """Say which value is right, or that it does not matter."""
    if not act.items:
        return
    slot = act.items[0].slot
    if not me.constrains(slot):
        me.constraints.append(Item(slot, DONTCARE))
    me.agenda.append(Act("inform", (Item(slot, me.wanted(slot) or DONTCARE),)))


def on_reqmore(me: Mind, act: Act, slots: Slots, rng: Generator) -> None:
    if len(me.agenda) > 1:
        _go_on(me, slots, rng)
    elif not me.open_requests():
        done = rng.random() < me.chances["no_more"]
        me.agenda = [*me.agenda, NEGATE] if done else [BYE]
    elif me.requests.get(NAME) is not None:
        me.agenda += [Act("request", (Item(slot),)) for slot in me.open_requests()]
    elif rng.random() < me.chances["yes_more"]:
        me.agenda.append(AFFIRM)
    else:
        known = [item for item in me.constraints if item.value != DONTCARE]
        me.agenda.append(Act("inform", (*slots.type.items, *known)))


def _go_on(me: Mind, slots: Slots, rng: Generator) -> None:
    """What is on the agenda comes first, perhaps with a yes."""
    following = me.agenda[-1]
    if following == slots.type or rng.random() >= me.chances["affirm_with_agenda"]:
        return
    if following.type == "inform":
        me.agenda[-1] = Act("affirm", following.items)


REACTIONS: Mapping[str, Callable[[Mind, Act, Slots, Generator], None]] = {
    "hello": on_hello,
    "bye": on_bye,
    "null": on_null,
    "repeat": on_null,
    "request": on_request,
    "confirm": on_confirm,
    "select": on_select,
    "inform": on_inform,
    "reqmore": on_reqmore,
}
"""By type of the system's act."""
