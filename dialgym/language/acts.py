"""Dialogue acts as values: a type and its items, parsed from text and printed to it.

An act is a type and items, ``inform(food="thai",area="north")``. An item is a slot, a slot with a
value, or a slot and what its value is not: ``request(phone)``, ``inform(name!="the nirala")``. An
item may have no slot, where the listener knows which is meant: ``inform(="dontcare")``.
"""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple


class SlotValue(NamedTuple):
    """A slot and what is said of it."""

    slot: str
    value: str | None = None
    negated: bool = False


class Act(NamedTuple):
    """A dialogue act."""

    type: str
    items: tuple[SlotValue, ...] = ()

    def value(self, slot: str) -> str | None:
        """The first value that the act gives a slot, negated ones aside."""
        for item in self.items:
            if item.slot == slot and not item.negated:
                return item.value
        return None

    def values(self, slot: str) -> list[str | None]:
        """All values that the act gives a slot, negated ones aside."""
        return [item.value for item in self.items if item.slot == slot and not item.negated]

    def mentions(self, slot: str) -> bool:
        """Return True if an item is about the slot."""
        return any(item.slot == slot for item in self.items)

    def same(self, other: "Act | None") -> bool:
        """Return True if both say the same, in whatever order."""
        if other is None or self.type != other.type or len(self.items) != len(other.items):
            return False
        return self.items == other.items or set(self.items) == set(other.items)


NULL = Act("null")
"""The act of a text that was not understood."""
Hypotheses = Sequence[tuple[Act, float]]
"""Readings of an act with their probabilities, which sum to 1."""


def act(type: str, *items: tuple[str, str | None], **values: str) -> Act:
    """An act by its items: ``act("inform", food="thai")``, ``act("request", ("phone", None))``."""
    return Act(type, tuple([SlotValue(*pair) for pair in (*items, *values.items())]))


def print_act(act: Act) -> str:
    """The text of an act; every value is in quotes, a quote within a value has a backslash."""
    return f"{act.type}({','.join([_print_item(item) for item in act.items])})"


def _print_item(item: SlotValue) -> str:
    slot, value, negated = item
    if value is None:
        return slot
    if '"' in value or "\\" in value:
        value = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'{slot}!="{value}"' if negated else f'{slot}="{value}"'


_HEAD = re.compile(r"\s*([A-Za-z_][\w-]*)\s*\((.*)\)\s*", re.DOTALL)
_ONE = re.compile(r"""\s*[A-Za-z_][\w-]*\s*\((?:[^"()]|"(?:[^"\\]|\\.)*")*\)""", re.DOTALL)
"""An act at the beginning of a text; a bracket within quotes does not end it."""
_ITEM = re.compile(
    r"""\s*([\w.-]*)\s*                             # slot
        (?:(!?=)\s*(?:"((?:[^"\\]|\\.)*)"           # a value in quotes
                     |([^",=!()]*[^",=!()\s]))\s*)? # or without
        (?:,|$)""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


@lru_cache(maxsize=4096)
def parse_act(text: str) -> Act:
    """The act of a text; values may go without quotes where they hold none of ``",=!()``.

    Raises:
        ValueError: the text is no act.
    """
    head = _HEAD.fullmatch(text)
    items = None if head is None else _items(head[2])
    if head is None or items is None:
        raise ValueError(f'expected an act such as inform(food="thai",area="north"); got {text!r}.')
    return Act(head[1], items)


def parse_acts(text: str) -> tuple[Act, ...]:
    """The acts of an utterance of several, ``inform(food="thai") request(phone)``; none of blanks.

    Raises:
        ValueError: the text is not made of acts alone.
    """
    acts: list[Act] = []
    start, end = 0, len(text.rstrip())
    while start < end:
        match = _ONE.match(text, start)
        if match is None:
            raise ValueError(
                'expected acts such as inform(food="thai") request(phone); '
                f"got {text[start:].strip()!r} in {text!r}."
            )
        acts.append(parse_act(match[0]))
        start = match.end()
    return tuple(acts)


def _items(text: str) -> tuple[SlotValue, ...] | None:
    items: list[SlotValue] = []
    start = 0
    if not text.strip():
        return ()
    while start < len(text):
        match = _ITEM.match(text, start)
        if match is None or not (match[1] or match[2]):
            return None
        items.append(_item(match))
        start = match.end()
    return None if text.rstrip().endswith(",") else tuple(items)


def _item(match: re.Match[str]) -> SlotValue:
    slot, relation, quoted, plain = match.groups()
    if relation is None:
        return SlotValue(slot)
    value = plain if quoted is None else _ESCAPED.sub(r"\1", quoted)
    return SlotValue(slot, value, relation == "!=")


def print_hypotheses(hypotheses: Iterable[tuple[Act, float]]) -> str:
    """Acts and their probabilities: ``inform(food="thai") 0.83 | null() 0.17``."""
    return " | ".join([f"{print_act(act)} {score:.2f}" for act, score in hypotheses])
