"""Acts as words, each of which is a token: ``hotel-inform area north train-request day``.

The system names acts without values, ``hotel-recommend name name2``, and the rules find the values;
what the user hears has them, or ``told`` for what nobody can ask for by its value. To what it hears
of the user the system is given how many rows match what it believes, in the bins of the features,
and that belief: ``hotel-inform area north = hotel matches3 area north stars 4 booked``.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np

from dialgym.language import Grammar
from dialgym.language.text import words_for
from dialgym.tasks.base import SYSTEM, USER
from dialgym.tasks.multiwoz.agenda import ANY, DONTCARE, NOT_BOOK
from dialgym.tasks.multiwoz.data import World
from dialgym.tasks.multiwoz.entries import REQUEST, SYSTEM_ENTRIES
from dialgym.tasks.multiwoz.fidelity import Fidelity
from dialgym.tasks.multiwoz.languages.base import ORDINARY, longest_texts
from dialgym.tasks.multiwoz.languages.grammar import (
    HOURS,
    MINUTES,
    MOST,
    TIMES,
    all_kinds,
    entry_kind,
    entry_slot,
    kind_word,
    short_word,
    system_grammar,
    user_grammar,
)
from dialgym.tasks.multiwoz.ontology import (
    BOOKABLE,
    DOMAINS,
    INFORMABLE,
    SLOT_NAMES,
    act_domain,
)
from dialgym.tasks.multiwoz.slot_values import slot_values
from dialgym.tasks.multiwoz.types import ASKED, NONE, Acts, DialogueAct, MultiWOZBelief
from dialgym.tasks.multiwoz.vectors import BINS, TABLES, Vectoriser

Generator = np.random.Generator
SAID, HEARD, TOLD, NOTED = 3 * MOST + 8, 32, 32, 80
"""Words of what the user says, the system hears, the user hears, and of the user's note; of longer
ones the rest is left out."""
UNNAMED, BELIEVED, BOOKED, SILENT = "told", "=", "booked", "silent"
MATCHES = tuple(f"matches{place}" for place in range(BINS))


class MultiWOZWords:
    """The words of a world.

    Args:
        world: its values.
    """

    tokenizer = "word"
    ordinary = ORDINARY

    def __init__(self, world: World) -> None:
        self.world = world
        self._vectoriser = Vectoriser(world.database, Fidelity())
        kinds = [kind_word(d, i) for d, i in all_kinds()]
        slots = [entry_slot(entry) for entry in SYSTEM_ENTRIES]
        short = [s.lower() for names in SLOT_NAMES.values() for s in names]
        fixed = [*kinds, *slots, *short, NOT_BOOK.lower(), NONE, UNNAMED, BELIEVED, BOOKED, SILENT]
        fixed += [*MATCHES, *DOMAINS, *HOURS, *MINUTES]
        self._fixed = tuple(dict.fromkeys(fixed))
        self._values = {
            (domain, slot): slot_values(world, domain, slot)
            for domain in DOMAINS
            for slot in (*INFORMABLE[domain], *BOOKABLE[domain])
            if slot not in TIMES
        }
        every = [value for values in self._values.values() for value in values]
        self._word = words_for((DONTCARE, ANY, *every), self._fixed)
        self._value = {word: value for value, word in self._word.items()}
        self.vocabulary: Sequence[str] = (*self._fixed, *self._word.values())
        self.charset = "".join(sorted({" ", *"".join(self.vocabulary)}))
        self._kinds = {kind_word(d, i): (d, i) for d, i in all_kinds()}
        self._entries = {(entry_kind(e), entry_slot(e)): n for n, e in enumerate(SYSTEM_ENTRIES)}
        self.words: Mapping[str, Mapping[str, int]] = {
            SYSTEM: {SYSTEM: 2 * MOST, USER: HEARD},
            USER: {SYSTEM: TOLD, USER: max(NOTED, SAID)},
        }

    @cached_property
    def longest(self) -> Mapping[str, int]:
        """Characters of the longest text of each party."""
        widest = 1 + max(map(len, self.vocabulary))
        return {SYSTEM: longest_texts(self.world)[SYSTEM], USER: widest * (NOTED + 1)}

    def grammar(self, party: str) -> Grammar:
        """Up to eight acts: a kind, and the slots that it can have; the user says a value after."""
        return self._grammars[party]

    @cached_property
    def _grammars(self) -> Mapping[str, Grammar]:
        return {SYSTEM: system_grammar(), USER: user_grammar(self._values, self._word)}

    def entries(self, text: str) -> tuple[int, ...] | None:
        """The acts that the words name; None where one of them is unknown or out of place."""
        numbers: list[int] = []
        kind, open_kind = "", False
        for word in text.split():
            if word in self._kinds:
                if open_kind and not self._end(kind, numbers):
                    return None
                kind, open_kind = word, True
                continue
            number = self._entries.get((kind, word))
            if number is None:
                return None
            numbers.append(number)
            open_kind = False
        if open_kind and not self._end(kind, numbers):
            return None
        return tuple(numbers) if numbers else None

    def _end(self, kind: str, numbers: list[int]) -> bool:
        """Note a kind that was said alone; whether it can be."""
        number = self._entries.get((kind, NONE))
        if number is not None:
            numbers.append(number)
        return number is not None

    def name_entries(self, numbers: Iterable[int]) -> str | None:
        """The words of acts without values, of the first eight."""
        words: list[str] = []
        last = ""
        for number in list(numbers)[:MOST]:
            entry = SYSTEM_ENTRIES[number]
            kind, slot = entry_kind(entry), entry_slot(entry)
            if slot == NONE:
                words.append(kind)
                last = ""
                continue
            words += [slot] if kind == last else [kind, slot]
            last = kind
        return " ".join(words)

    def say(self, acts: Acts, party: str, rng: Generator) -> str:
        """The words of acts with their values."""
        return " ".join(self._spell(acts)[: TOLD if party == SYSTEM else NOTED])

    def _spell(self, acts: Acts) -> list[str]:
        words: list[str] = []
        last = ""
        for intent, domain, slot, value in acts:
            kind = kind_word(domain, intent)
            if slot == NONE:
                words.append(kind)
                last = ""
                continue
            words += [slot.lower()] if kind == last else [kind, slot.lower()]
            words += () if value in (ASKED, NONE) else self._spell_value(value)
            last = kind
        return words

    def _spell_value(self, value: str) -> tuple[str, ...]:
        known = self._word.get(value)
        if known is not None:
            return (known,)
        hour, _, minute = value.partition(":")
        both = f"{hour}h", f"{minute}m"
        return both if both[0] in HOURS and both[1] in MINUTES else (UNNAMED,)

    def understand(self, text: str, party: str) -> Acts | None:
        """The acts of some words; None where one of them is unknown or out of place."""
        acts: list[DialogueAct] = []
        kind: tuple[str, str] | None = None
        words, place = text.split(), 0
        while place < len(words):
            word, place = words[place], place + 1
            if word in self._kinds:
                kind = self._kinds[word]
                following = words[place] if place < len(words) else ""
                if self._slot_of(kind[0], following) is None:
                    acts.append(DialogueAct(kind[1], kind[0]))
                continue
            slot = None if kind is None else self._slot_of(kind[0], word)
            if kind is None or slot is None:
                return None
            value, place = self._read_value(words, place)
            if kind[1] == REQUEST:
                value = ASKED
            acts.append(DialogueAct(kind[1], kind[0], slot, value))
        return tuple(acts) or None

    def _slot_of(self, domain: str, word: str) -> str | None:
        """The short name of a slot."""
        return self._slots.get((domain, word))

    @cached_property
    def _slots(self) -> Mapping[tuple[str, str], str]:
        known = {(d, s.lower()): s for d, names in SLOT_NAMES.items() for s in names}
        return known | {(act_domain(d), NOT_BOOK.lower()): NOT_BOOK for d in DOMAINS}

    def _read_value(self, words: Sequence[str], place: int) -> tuple[str, int]:
        """The value at a place, ``none`` where there is none, and the place after it."""
        word = words[place] if place < len(words) else ""
        if word in self._value:
            return self._value[word], place + 1
        if word in HOURS and place + 1 < len(words) and words[place + 1] in MINUTES:
            return f"{word[:-1]}:{words[place + 1][:-1]}", place + 2
        return NONE, place + (word == UNNAMED)

    def hear(
        self, text: str, said: Acts, heard: Acts, belief: MultiWOZBelief, rng: Generator
    ) -> str:
        """The words of what was heard, then what is believed of the domains that it was about."""
        words = self._spell(heard) or [SILENT]
        for domain in dict.fromkeys(act.domain.lower() for act in heard):
            if domain in TABLES:
                words += [BELIEVED, domain, *self._matches(domain, belief)]
        return " ".join(words[:HEARD])

    def _matches(self, domain: str, belief: MultiWOZBelief) -> Iterator[str]:
        known = belief.constraints.get(domain, {})
        yield MATCHES[self._vectoriser.bin(domain, known)]
        if domain in belief.booked:
            yield BOOKED
        for slot, value in known.items():
            yield short_word(domain, slot)
            yield from self._spell_value(value)
