"""The user's reaction to each type of system act: acts pushed on its agenda."""

from collections.abc import Callable, Collection, Mapping

import numpy as np

from dialgym.language.acts import Act, SlotValue
from dialgym.tasks.slot_filling.domain.ontology import DONTCARE, NAME, NONE, TYPE
from dialgym.tasks.slot_filling.user.grounding import (
    AFFIRM,
    BYE,
    NEGATE,
    REQALTS,
    Slots,
    accepts,
    choose,
    fits,
)
from dialgym.tasks.slot_filling.user.state import SlotFillingUserState

Generator = np.random.Generator
HELLO = Act("hello")


def on_hello(user: SlotFillingUserState, act: Act, slots: Slots, rng: Generator) -> None:
    if not act.items and rng.random() < user.probabilities["greet"]:
        user.agenda.append(HELLO)


def on_bye(user: SlotFillingUserState, act: Act, slots: Slots, rng: Generator) -> None:
    user.agenda = [BYE]


def on_null(user: SlotFillingUserState, act: Act, slots: Slots, rng: Generator) -> None:
    user.agenda.append(user.repeatable)


def on_request(user: SlotFillingUserState, act: Act, slots: Slots, rng: Generator) -> None:
    """Ask back, answer from the agenda or the goal, or take it that there is no preference."""
    if not act.items:
        return
    slot = act.items[0].slot
    name, missing = user.requests.get(NAME), user.open_requests()
    if name is not None and missing:
        user.agenda.append(Act("request", (SlotValue(NAME, name), SlotValue(missing[0]))))
    elif slot == TYPE:
        user.agenda.append(slots.type)
    elif slot in slots.only_user:
        user.agenda.append(NEGATE)
    elif planned := [a for a in user.agenda if a.type == "inform" and a.mentions(slot)]:
        user.agenda = [a for a in user.agenda if a not in planned] + planned
    elif user.constrains(slot):
        user.agenda.append(Act("inform", tuple([i for i in user.constraints if i.slot == slot])))
    else:
        _answer_anything(user, slot, rng)


def _answer_anything(user: SlotFillingUserState, slot: str, rng: Generator) -> None:
    draw = rng.random() - user.probabilities["repeat_constraint"]
    if draw < 0 and user.constraints:
        item = choose(user.constraints, rng)
        user.agenda.append(Act("inform", (SlotValue(item.slot, item.value),)))
    elif draw < user.probabilities["no_preference"]:
        user.agenda.append(Act("inform", (SlotValue("", DONTCARE),)))
    else:
        user.constraints.append(SlotValue(slot, DONTCARE))
        user.used[slot] = user.used.get(slot, frozenset()) | {DONTCARE}
        user.agenda.append(Act("inform", (SlotValue(slot, DONTCARE),)))


def on_confirm(user: SlotFillingUserState, act: Act, slots: Slots, rng: Generator) -> None:
    """Correct what is wrong, say that a slot does not matter, or affirm."""
    if not accepts(user, act, slots, rng, confirming=True):
        return
    for item in act.items:
        if item.slot != TYPE and item.value != DONTCARE and not user.constrains(item.slot):
            user.agenda.append(Act("negate", (SlotValue(item.slot, DONTCARE),)))
            return
    affirm = AFFIRM
    if (
        user.agenda
        and user.agenda[-1].type == "inform"
        and rng.random() < user.probabilities["combine_affirm"]
    ):
        affirm = Act("affirm", user.agenda.pop().items)
    user.agenda.append(affirm)


def on_confreq(user: SlotFillingUserState, act: Act, slots: Slots, rng: Generator) -> None:
    """Correct what is wrong of what is taken as understood, or answer the request."""
    understood = tuple([item for item in act.items[:-1] if item.slot != "count"])
    if accepts(user, Act("confirm", understood), slots, rng, confirming=True):
        on_request(user, Act("request", act.items[-1:]), slots, rng)


def on_select(user: SlotFillingUserState, act: Act, slots: Slots, rng: Generator) -> None:
    """Say which value is right, or that it does not matter."""
    if not act.items:
        return
    slot = act.items[0].slot
    if not user.constrains(slot):
        user.constraints.append(SlotValue(slot, DONTCARE))
    user.agenda.append(Act("inform", (SlotValue(slot, user.wanted(slot) or DONTCARE),)))


def on_reqmore(user: SlotFillingUserState, act: Act, slots: Slots, rng: Generator) -> None:
    if len(user.agenda) > 1:
        _go_on(user, slots, rng)
    elif not user.open_requests():
        done = rng.random() < user.probabilities["no_more"]
        user.agenda = [*user.agenda, NEGATE] if done else [BYE]
    elif user.requests.get(NAME) is not None:
        user.agenda += [Act("request", (SlotValue(slot),)) for slot in user.open_requests()]
    elif rng.random() < user.probabilities["yes_more"]:
        user.agenda.append(AFFIRM)
    else:
        known = [item for item in user.constraints if item.value != DONTCARE]
        user.agenda.append(Act("inform", (*slots.type.items, *known)))


def _go_on(user: SlotFillingUserState, slots: Slots, rng: Generator) -> None:
    """Say what is on the agenda first, perhaps with a yes."""
    following = user.agenda[-1]
    if following == slots.type or rng.random() >= user.probabilities["affirm_with_agenda"]:
        return
    if following.type == "inform":
        user.agenda[-1] = Act("affirm", following.items)


def on_inform(user: SlotFillingUserState, act: Act, slots: Slots, rng: Generator) -> None:
    """Object, look for another row, relax the goal, or take the answers and ask on."""
    names = [item for item in act.items if item.slot == NAME]
    excepted = [item.value for item in names if item.negated]
    if names:
        user.relaxing = not names[-1].negated and names[-1].value == NONE
    nothing = bool(names) and user.relaxing
    name = act.value(NAME)
    if name not in (None, NONE, user.requests.get(NAME)):
        user.forget_answers()
    if not accepts(user, act, slots, rng, confirming=False):
        return
    if nothing:
        changed = _change_goal(user, act, True, slots, rng)
    else:
        changed = _looks_on(user, act, name, slots, rng)
    if changed:
        return
    chosen = None if nothing or not excepted else _pick(user, act, excepted, rng)
    if user.relaxing:
        give_up = rng.random() < user.probabilities["give_up"]
        user.agenda = [BYE] if give_up else [*user.agenda, slots.type]
        return
    _note_answers(user, act, chosen, slots.asked)
    _ask_on(user, chosen, rng)


def _looks_on(
    user: SlotFillingUserState, act: Act, name: str | None, slots: Slots, rng: Generator
) -> bool:
    """True if the user asks for another row, which it does at most once, at the first offer."""
    draw = 1.0 if user.offered else rng.random() - user.probabilities["alternative"]
    user.offered = True
    if draw < 0:
        _exclude(user, name)
        user.agenda.append(REQALTS)
        return True
    if draw < user.probabilities["alternative_goal"]:
        return _change_goal(user, act, False, slots, rng)
    _settle_on(user, name)
    return False


def _exclude(user: SlotFillingUserState, name: str | None) -> None:
    if name not in (None, NONE):
        user.constraints.append(SlotValue(NAME, name, True))


def _settle_on(user: SlotFillingUserState, name: str | None) -> None:
    if name not in (None, NONE):
        _replace(user, NAME, str(name))


def _replace(user: SlotFillingUserState, slot: str, value: str) -> None:
    kept = [item for item in user.constraints if item.slot != slot or item.negated]
    user.constraints = [*kept, SlotValue(slot, value)]


def _change_goal(
    user: SlotFillingUserState, act: Act, nothing: bool, slots: Slots, rng: Generator
) -> bool:
    """Relax one constraint that the system spoke of, or any; False if there is none."""
    if not user.constraints:
        return False
    spoken = [
        item.slot
        for item in act.items
        if item.slot in slots.asked and item.value not in (None, slots.ontology.type)
        and (item.value != DONTCARE or item.negated)
    ]  # fmt: skip
    slot = choose(spoken or [item.slot for item in user.constraints], rng)
    user.constraints = [item for item in user.constraints if item.slot != NAME]
    value = _another_value(user, slot, slots, rng)
    _replace(user, slot, value)
    if nothing or rng.random() < user.probabilities["tell_change"]:
        user.agenda.append(Act("reqalts", (SlotValue(slot, value),)))
        return True
    user.agenda.append(REQALTS)
    if value == DONTCARE:
        _exclude(user, act.value(NAME))
    else:
        user.requests[slot] = None
    return True


def _another_value(user: SlotFillingUserState, slot: str, slots: Slots, rng: Generator) -> str:
    if rng.random() < user.probabilities["relax"] or slot not in user.used:
        value = DONTCARE
    else:
        values = slots.ontology.informable.get(slot, ())  # it can have been asked for no slot
        fresh = [v for v in values if v not in user.used[slot]]
        value = choose(fresh, rng) if fresh else DONTCARE
    user.used[slot] = user.used.get(slot, frozenset()) | {value}
    return value


def _pick(
    user: SlotFillingUserState, act: Act, names: list[str | None], rng: Generator
) -> str | None:
    """One of the rows that the system has listed; the goal is relaxed to what it spoke of."""

    def possible() -> list[str | None]:
        return [n for n in names if all(fits(c, SlotValue(NAME, n)) for c in user.constraints)]

    if not possible():
        user.constraints = [item for item in user.constraints if item.slot != NAME]
    chosen = choose(possible(), rng)
    for item in user.constraints:
        if not act.mentions(item.slot):
            _replace(user, item.slot, DONTCARE)
            forget(user, item.slot)
    return chosen


def forget(user: SlotFillingUserState, slot: str) -> None:
    """Take what tells of a slot from the agenda."""
    user.agenda = [
        act
        for act in user.agenda
        if act.type not in ("inform", "confirm", "affirm") or not act.mentions(slot)
    ]


def listen(user: SlotFillingUserState, act: Act) -> None:
    """Record what any user takes from an act: the answers to its requests."""
    name = act.value(NAME)
    if act.type == "inform" and name != NONE:
        if name not in (None, user.requests.get(NAME)):
            user.forget_answers()
        _note_answers(user, act, None)


def _note_answers(
    user: SlotFillingUserState, act: Act, chosen: str | None, asked: Collection[str] = ()
) -> None:
    """Take the answers of an act; `asked` are the slots that the system asks for.

    One that there is nothing else for says of these what was looked for, `dontcare` too.
    """
    told = {item.slot: item.value for item in act.items if not item.negated}
    nothing = told.get(NAME) == NONE
    if chosen is not None:
        told[NAME] = chosen
    restated = [s for s in asked if nothing and told.get(s) == DONTCARE]
    user.take_answers({slot: told[slot] for slot in user.requests if slot in told}, restated)


def _ask_on(user: SlotFillingUserState, chosen: str | None, rng: Generator) -> None:
    """Thank, go on with the agenda, or ask for what is missing."""
    if rng.random() < user.probabilities["confirm_informs"]:
        user.agenda = [_as_confirm(act) for act in user.agenda]
    draw = rng.random() - user.probabilities["thank"]
    if draw < user.probabilities["acknowledge"]:
        user.agenda.append(Act("thankyou" if draw < 0 else "ack"))
        return
    if len(user.agenda) > 1 and rng.random() < user.probabilities["agenda_first"]:
        return
    missing = user.open_requests()
    if not missing:
        return
    items = [] if chosen is None else [SlotValue(NAME, chosen)]
    items.append(SlotValue(missing[0]))
    for slot in missing[1:]:
        if rng.random() >= user.probabilities["request_more"]:
            break
        items.append(SlotValue(slot))
    user.agenda.append(Act("request", tuple(items)))


def _as_confirm(act: Act) -> Act:
    plain = act.type == "inform" and act.items and act.items[0].value != DONTCARE
    return Act("confirm", act.items) if plain else act


REACTIONS: Mapping[str, Callable[[SlotFillingUserState, Act, Slots, Generator], None]] = {
    "hello": on_hello,
    "bye": on_bye,
    "null": on_null,
    "repeat": on_null,
    "request": on_request,
    "confirm": on_confirm,
    "confreq": on_confreq,
    "select": on_select,
    "inform": on_inform,
    "reqmore": on_reqmore,
}
"""By type of the system's act."""
