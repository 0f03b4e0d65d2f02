"""Acts of an utterance as text, ``Hotel-Inform(Area="north") Train-Request(Day)``, and back."""

from collections.abc import Iterable
from functools import lru_cache

from dialgym.language.acts import Act, SlotValue, parse_acts, print_act
from dialgym.tasks.multiwoz.types import ASKED, NONE, Acts, DialogueAct

KEPT = 1 << 15
"""Utterances of which text and acts are remembered; most dialogues repeat what others said."""


@lru_cache(maxsize=KEPT)
def print_acts(acts: Acts) -> str:
    """The text of an utterance, empty where it has no acts; `read_acts` gives the same acts.

    Acts of one domain and intent that follow on each other share their brackets. A slot alone is
    asked for, and ``Hotel-Inform()`` is about no slot.
    """
    return " ".join([print_act(act) for act in _together(acts)])


def _together(acts: Acts) -> Iterable[Act]:
    """Acts in the notation that all tasks share, in which one act may have several items."""
    kind, items = "", list[SlotValue]()
    for intent, domain, slot, value in acts:
        alone = slot == NONE and value == NONE
        if kind and (alone or not items or kind != f"{domain}-{intent}"):
            yield Act(kind, tuple(items))
            items = []
        kind = f"{domain}-{intent}"
        if not alone:
            items.append(SlotValue(slot, None if value == ASKED else value))
    if kind:
        yield Act(kind, tuple(items))


@lru_cache(maxsize=KEPT)
def read_acts(text: str) -> Acts | None:
    """The acts of a text; None where it is not their notation."""
    try:
        parsed = parse_acts(text)
    except ValueError:
        return None
    acts: list[DialogueAct] = []
    for act in parsed:
        domain, dash, intent = act.type.partition("-")
        if not dash or not intent or any(item.negated for item in act.items):
            return None
        told = [DialogueAct(intent, domain, s, ASKED if v is None else v) for s, v, _ in act.items]
        acts += told or [DialogueAct(intent, domain)]
    return tuple(acts)
