"""Interface of MultiWOZ's languages."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Protocol, runtime_checkable

import numpy as np

from dialgym.language import AnyText, Constraint
from dialgym.language.text import TextForm
from dialgym.tasks.base import SYSTEM, USER
from dialgym.tasks.multiwoz.data import World
from dialgym.tasks.multiwoz.entries import SYSTEM_ENTRIES, USER_ENTRIES, Entry
from dialgym.tasks.multiwoz.notation import print_acts, read_acts
from dialgym.tasks.multiwoz.ontology import (
    BOOKING,
    DOMAINS,
    SHORT_NAMES,
    SLOT_NAMES,
    act_domain,
)
from dialgym.tasks.multiwoz.types import Acts, DialogueAct, MultiWOZBelief, MultiWOZGoal

Generator = np.random.Generator
SYNTAX = '()=," \\'
LEAST_VALUE, MORE = 40, 1000
"""Characters that there is room for in any value, and in the user's texts beside each act once."""
ORDINARY: Mapping[str, int] = MappingProxyType({SYSTEM: 320, USER: 240})
"""Characters that ordinary texts stay within, in any language; see `Facts.ordinary`."""


@runtime_checkable
class NLU(Protocol):
    """Understands what a party says."""

    def understand(self, text: str, party: str) -> Acts | None:
        """The acts of a text; None where nothing in it is understood."""
        ...


@runtime_checkable
class NLG(Protocol):
    """Puts acts into text."""

    def say(self, acts: Acts, party: str, rng: Generator) -> str:
        """A text in which `party` says the acts."""
        ...


class MultiWOZLanguage(NLU, NLG, TextForm, Protocol):
    """Understands and speaks."""

    def grammar(self, party: str) -> Constraint:
        """The grammar of a party's utterances."""
        ...

    def entries(self, text: str) -> tuple[int, ...] | None:
        """The acts without values that the system names, where it says no values; else None."""
        ...

    def name_entries(self, numbers: Iterable[int]) -> str | None:
        """Utterance of the system that names acts without values; None where it says values."""
        ...

    def hear(
        self, text: str, said: Acts, heard: Acts, belief: MultiWOZBelief, rng: Generator
    ) -> str:
        """Reading of the user's `text` by the system: what it took it for, and believes now."""
        ...


class MultiWOZNotation:
    """Acts as they are written down: ``Hotel-Inform(Area="north") Train-Request(Day)``."""

    tokenizer = "char"
    words: Mapping[str, Mapping[str, int]] | None = None
    ordinary = ORDINARY
    vocabulary: Sequence[str] = ()

    def __init__(self, world: World) -> None:
        self.world = world

    @cached_property
    def charset(self) -> str:
        """The characters of everything that is said."""
        return charset_of(self.world)

    @cached_property
    def longest(self) -> Mapping[str, int]:
        """Characters of the longest text of each party."""
        return longest_texts(self.world)

    def grammar(self, party: str) -> Constraint:
        return AnyText()

    def entries(self, text: str) -> tuple[int, ...] | None:
        return None

    def name_entries(self, numbers: Iterable[int]) -> str | None:
        return None

    def say(self, acts: Acts, party: str, rng: Generator) -> str:
        return print_acts(acts)

    def understand(self, text: str, party: str) -> Acts | None:
        return read_acts(text)

    def hear(
        self, text: str, said: Acts, heard: Acts, belief: MultiWOZBelief, rng: Generator
    ) -> str:
        return text if heard == said else self.say(heard, USER, rng)


def goal_acts(goal: MultiWOZGoal) -> Acts:
    """Wishes in each domain, as the user would say it."""
    acts: list[DialogueAct] = []
    for domain, wanted in goal.domains.items():
        name, short = act_domain(domain), SHORT_NAMES[domain]
        acts.append(DialogueAct("Inform", name))
        told = {**(wanted.fail_info or wanted.info), **(wanted.fail_book or wanted.book)}
        acts += [DialogueAct("Inform", name, short[slot], value) for slot, value in told.items()]
        acts += [DialogueAct("Request", name, short[slot], "?") for slot in wanted.requests]
    return tuple(acts)


def charset_of(world: World) -> str:
    """The characters of everything that is said in a world."""
    kinds = "".join(f"{e.domain}-{e.intent}{e.slot}" for e in SYSTEM_ENTRIES)
    plain = "".join(map(chr, range(ord(" "), 127)))
    return "".join(sorted({*SYNTAX, *kinds, *plain, *"".join(cells_of(world))}))


def cells_of(world: World) -> Iterable[str]:
    """All texts of the database, and all known values."""
    for domain in DOMAINS:
        for row in world.database.rows(domain):
            yield from (cell for cell in row.values() if isinstance(cell, str))
        for values in world.values.get(domain, {}).values():
            yield from values


def longest_texts(world: World) -> Mapping[str, int]:
    """Characters of the longest notation of each party: all its acts at once, and a few more."""
    told = sum(_longest_act(world, entry) for entry in SYSTEM_ENTRIES)
    said = sum(_longest_act(world, entry) for entry in USER_ENTRIES)
    return {SYSTEM: told, USER: said + MORE}


def _longest_act(world: World, entry: Entry) -> int:
    """Characters of an act with the longest value that its slot has."""
    domain, _, short, place = entry
    slot = SLOT_NAMES.get(domain, {}).get(short, short)
    length = len(f"{domain}-{entry.intent}({short}=) ")
    return length + (_longest_value(world, domain.lower(), slot) if place else 0)


def _longest_value(world: World, domain: str, slot: str) -> int:
    domains = DOMAINS if domain == BOOKING.lower() else (domain,)
    cells = [row.get(slot, "") for name in domains for row in world.database.rows(name)]
    known = [v for name in domains for v in world.values.get(name, {}).get(slot, ())]
    return max(LEAST_VALUE, max(map(len, (*cells, *known)), default=0) + len('""'))
