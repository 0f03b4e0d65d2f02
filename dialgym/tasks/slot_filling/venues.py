"""What the user does when it is told of a row, or that there is none as it wants it."""

import numpy as np

from dialgym.language.acts import Act, Item
from dialgym.tasks.slot_filling.grounding import (
    BYE,
    REQALTS,
    Slots,
    accepts,
    choose,
    fits,
)
from dialgym.tasks.slot_filling.ontology import DONTCARE, NAME, NONE
from dialgym.tasks.slot_filling.types import Mind

Generator = np.random.Generator


def on_inform(me: Mind, act: Act, slots: Slots, rng: Generator) -> None:
    """Object, look for another row, relax the goal, or take the answers and ask on."""
    names = [item for item in act.items if item.slot == NAME]
    excepted = [item.value for item in names if item.negated]
    if names:
        me.relaxing = not names[-1].negated and names[-1].value == NONE
    nothing = bool(names) and me.relaxing
    name = act.value(NAME)
    if name not in (None, NONE, me.requests.get(NAME)):
        me.forget_answers()
    if not accepts(me, act, slots, rng, confirming=False):
        return
    if nothing:
        changed = _change_goal(me, act, True, slots, rng)
    else:
        changed = _looks_on(me, act, name, slots, rng)
    if changed:
        return
    chosen = None if nothing or not excepted else _pick(me, act, excepted, rng)
    if me.relaxing:
        give_up = rng.random() < me.chances["give_up"]
        me.agenda = [BYE] if give_up else [*me.agenda, slots.type]
        return
    _note_answers(me, act, chosen)
    _ask_on(me, chosen, rng)


def _looks_on(me: Mind, act: Act, name: str | None, slots: Slots, rng: Generator) -> bool:
    """Whether the user asks for another row, which it does at most once, at the first offer."""
    draw = 1.0 if me.offered else rng.random() - me.chances["alternative"]
    me.offered = True
    if draw < 0:
        _exclude(me, name)
        me.agenda.append(REQALTS)
        return True
    if draw < me.chances["alternative_goal"]:
        return _change_goal(me, act, False, slots, rng)
    _settle_on(me, name)
    return False


def _exclude(me: Mind, name: str | None) -> None:
    if name not in (None, NONE):
        me.constraints.append(Item(NAME, name, True))


def _settle_on(me: Mind, name: str | None) -> None:
    if name not in (None, NONE):
        _replace(me, NAME, str(name))


def _replace(me: Mind, slot: str, value: str) -> None:
    kept = [item for item in me.constraints if item.slot != slot or item.negated]
    me.constraints = [*kept, Item(slot, value)]


def _change_goal(me: Mind, act: Act, nothing: bool, slots: Slots, rng: Generator) -> bool:
    """Relax one constraint that the system spoke of, or any; False if there is none."""
    if not me.constraints:
        return False
    spoken = [
        item.slot
        for item in act.items
        if item.slot in slots.asked and item.value not in (None, slots.ontology.type)
        and (item.value != DONTCARE or item.negated)
    ]  # fmt: skip
    slot = choose(spoken or [item.slot for item in me.constraints], rng)
    me.constraints = [item for item in me.constraints if item.slot != NAME]
    value = _another_value(me, slot, slots, rng)
    _replace(me, slot, value)
    if nothing or rng.random() < me.chances["tell_change"]:
        me.agenda.append(Act("reqalts", (Item(slot, value),)))
        return True
    me.agenda.append(REQALTS)
    if value == DONTCARE:
        _exclude(me, act.value(NAME))
    else:
        me.requests[slot] = None
    return True


def _another_value(me: Mind, slot: str, slots: Slots, rng: Generator) -> str:
    if rng.random() < me.chances["relax"] or slot not in me.used:
        value = DONTCARE
    else:
        fresh = [v for v in slots.ontology.informable[slot] if v not in me.used[slot]]
        value = choose(fresh, rng) if fresh else DONTCARE
    me.used[slot] = me.used.get(slot, frozenset()) | {value}
    return value


def _pick(me: Mind, act: Act, names: list[str | None], rng: Generator) -> str | None:
    """One of the rows that the system has listed; the goal is relaxed to what it spoke of."""

    def possible() -> list[str | None]:
        return [n for n in names if all(fits(c, Item(NAME, n)) for c in me.constraints)]

    if not possible():
        me.constraints = [item for item in me.constraints if item.slot != NAME]
    chosen = choose(possible(), rng)
    for item in me.constraints:
        if not act.mentions(item.slot):
            _replace(me, item.slot, DONTCARE)
            forget(me, item.slot)
    return chosen


def forget(me: Mind, slot: str) -> None:
    """Take what tells of a slot from the agenda."""
    me.agenda = [
        act
        for act in me.agenda
        if act.type not in ("inform", "confirm", "affirm") or not act.mentions(slot)
    ]


def listen(me: Mind, act: Act) -> None:
    """What any user takes from an act, whatever it says then: the answers to its requests."""
    name = act.value(NAME)
    if act.type == "inform" and name != NONE:
        if name not in (None, me.requests.get(NAME)):
            me.forget_answers()
        _note_answers(me, act, None)


def _note_answers(me: Mind, act: Act, chosen: str | None) -> None:
    told = {item.slot: item.value for item in act.items if not item.negated}
    if chosen is not None:
        told[NAME] = chosen
    me.requests.update({slot: told[slot] for slot in me.requests if slot in told})


def _ask_on(me: Mind, chosen: str | None, rng: Generator) -> None:
    """Thank, go on with the agenda, or ask for what is missing."""
    if rng.random() < me.chances["confirm_informs"]:
        me.agenda = [_as_confirm(act) for act in me.agenda]
    draw = rng.random() - me.chances["thank"]
    if draw < me.chances["acknowledge"]:
        me.agenda.append(Act("thankyou" if draw < 0 else "ack"))
        return
    if len(me.agenda) > 1 and rng.random() < me.chances["agenda_first"]:
        return
    missing = me.open_requests()
    if not missing:
        return
    items = [] if chosen is None else [Item(NAME, chosen)]
    items.append(Item(missing[0]))
    for slot in missing[1:]:
        if rng.random() >= me.chances["request_more"]:
            break
        items.append(Item(slot))
    me.agenda.append(Act("request", tuple(items)))


def _as_confirm(act: Act) -> Act:
    plain = act.type == "inform" and act.items and act.items[0].value != DONTCARE
    return Act("confirm", act.items) if plain else act
