"""Interpretation of a user act, given the system's act: goals, requests, method, discourse."""

from collections.abc import Mapping
from typing import NamedTuple

from dialgym.language.acts import Act, SlotValue
from dialgym.tasks.slot_filling.domain.ontology import DONTCARE, NAME, NONE, Ontology

METHODS = (NONE, "byconstraints", "byname", "finished", "byalternatives", "restart")
"""Methods by which a user looks for a row."""
BY_METHOD: Mapping[str, int] = {name: i for i, name in enumerate(METHODS)}
DISCOURSE = ("ack", "hello", NONE, "repeat", "silence", "thankyou", "bye")
"""Discourse acts of a user; the belief vector leaves out the last."""
BY_DISCOURSE: Mapping[str, int] = {name: i for i, name in enumerate(DISCOURSE)}
YES, NO = "1", "0"
"""The values of `Ontology.binary` slots."""
_TELLING = ("inform", "select", "request", "affirm", "negate", "reqalts", "hello", "bye",
            "thankyou", "ack", "repeat", "restart", "silence", "reqmore")  # fmt: skip


class Interpretation(NamedTuple):
    """The meaning of an act.

    Attributes:
        goals: the values that it gives informable slots.
        requested: the slots that it asks for.
        method: index into `METHODS`.
        discourse: index into `DISCOURSE`.
    """

    goals: Mapping[str, str]
    requested: tuple[str, ...]
    method: int
    discourse: int


_NOTHING = Interpretation({}, (), BY_METHOD[NONE], BY_DISCOURSE[NONE])


class Context(NamedTuple):
    """Part of the system's act that matters for the answer.

    Attributes:
        this: the slot that an answer without one is about.
        yes: what a bare yes means; None if nothing.
        no: what a bare no means; None if nothing.
        confirmed: the one slot and value that the system has asked to confirm.
        offered: whether a row has been offered in the dialogue.
    """

    this: str | None
    yes: Act | None
    no: Act | None
    confirmed: SlotValue | None
    offered: bool


class Interpreter:
    """Interprets acts of the user in a domain.

    Args:
        ontology: its slots.
        faulty: as the original, which loses ``inform(="dontcare")`` after anything but a
            request, and believes that a row was offered before one was.
    """

    def __init__(self, ontology: Ontology, faulty: bool) -> None:
        self.faulty = faulty
        self._informable = frozenset(ontology.informable)
        self._binary = frozenset(ontology.binary)

    def context(self, system: Act, entity: str) -> Context:
        """The context that the system's act makes; `entity` is what it has offered last."""
        kind, items = system.type, system.items
        if kind == "confreq":  # what is requested, last, is what a short answer is about
            kind, items = "request", items[-1:]
        slot = items[0].slot if items else None
        yes = no = None
        if kind == "confirm":
            yes = Act("inform", items) if items else None
        elif kind == "request" and slot in self._binary:
            yes, no = (Act("inform", (SlotValue(str(slot), value),)) for value in (YES, NO))
        binding = ("request",) if self.faulty else ("request", "select", "confirm")
        confirmed = items[0] if kind == "confirm" and len(items) == 1 else None
        offered = self.faulty or entity != ""
        this = slot if kind in binding and slot in self._informable else None
        return Context(this, yes, no, confirmed, offered)

    def interpret(self, act: Act, context: Context) -> Interpretation:
        """The meaning of an act in its context."""
        if act.type == "null":
            return _NOTHING
        act = _completed(act, context)
        told = self._told(act)
        requested = self._requested(act)
        goals = _goals(told, context)
        if act.type == "affirm" and context.confirmed is not None:
            slot, value, _ = context.confirmed
            if slot in self._informable and value is not None:
                goals = {slot: value, **goals}
        method = _method(act.type, told, requested, context)
        return Interpretation(goals, requested, method, _discourse(act.type))

    def _told(self, act: Act) -> list[SlotValue]:
        """The items that give a value to a slot, those without a slot among them."""
        items = [i for i in act.items if i.value is not None and not i.negated]
        if act.type == "deny":
            items = _replacements(items)
        elif act.type not in _TELLING:
            return []
        return [i for i in items if i.slot in self._informable or (i.slot, i.value) == _ANY]

    def _requested(self, act: Act) -> tuple[str, ...]:
        if act.type == "request":
            return tuple([item.slot for item in act.items if item.value is None])
        if act.type == "confirm":
            return tuple([item.slot for item in act.items if item.slot in self._informable])
        return ()


_ANY = ("", DONTCARE)


def _completed(act: Act, context: Context) -> Act:
    """A bare yes or no as what it means."""
    if act.items:
        return act
    if act.type == "affirm":
        return context.yes or act
    return context.no or act if act.type == "negate" else act


def _replacements(items: list[SlotValue]) -> list[SlotValue]:
    """Corrected value, in ``deny(food="thai",food="turkish")``.

    ``deny(food="thai",food="thai")``, as noise may have it, says of no value that it is right.
    """
    slots = [item.slot for item in items]
    firsts = [items[slots.index(item.slot)] for item in items]
    return [
        item
        for first, item in zip(firsts, items)
        if slots.count(item.slot) == 2
        and first.value != item.value
        and DONTCARE not in (item.value, first.value)
    ]


def _goals(told: list[SlotValue], context: Context) -> dict[str, str]:
    goals: dict[str, str] = {}
    for item in told:
        slot = item.slot or context.this
        if slot is not None:
            goals[slot] = str(item.value)
    return goals


def _method(kind: str, told: list[SlotValue], requested: tuple[str, ...], context: Context) -> int:
    if kind == "reqalts":
        return BY_METHOD["byalternatives"]
    if kind == "bye":
        return BY_METHOD["finished"]
    if told:
        named = any(item.slot == NAME for item in told)
        return BY_METHOD["byname" if named else "byconstraints"]
    if kind == "restart":
        return BY_METHOD["restart"]
    return BY_METHOD["byname" if requested and context.offered else NONE]


def _discourse(kind: str) -> int:
    return BY_DISCOURSE.get(kind, BY_DISCOURSE[NONE])
