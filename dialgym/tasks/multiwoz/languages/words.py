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
from dialgym.tasks.base import SYSTEM, USER
from dialgym.tasks.multiwoz.agenda import ANY, DONTCARE, NOT_BOOK
from dialgym.tasks.multiwoz.data import World
from dialgym.tasks.multiwoz.fidelity import Fidelity
from dialgym.tasks.multiwoz.languages.base import longest_texts
from dialgym.tasks.multiwoz.ontology import (
    BOOKABLE,
    DOMAINS,
    INFORMABLE,
    REQUESTABLE,
    SHORT_NAMES,
    SLOT_NAMES,
    act_domain,
)
from dialgym.tasks.multiwoz.slot_values import slot_values
from dialgym.tasks.multiwoz.types import ASKED, NONE, Acts, Belief, DialogueAct
from dialgym.tasks.multiwoz.vectors import (
    BINS,
    REQUEST,
    SYSTEM_ENTRIES,
    TABLES,
    USER_ENTRIES,
    Entry,
    Vectoriser,
)

Generator = np.random.Generator
MOST = 8
"""Acts of one utterance, by the grammar."""
SAID, HEARD, TOLD, NOTED = 3 * MOST + 8, 32, 32, 80
"""Words of what the user says, the system hears, the user hears, and of the user's note; of longer
ones the rest is left out."""
UNNAMED, BELIEVED, BOOKED, SILENT = "told", "=", "booked", "silent"
MATCHES = tuple(f"matches{place}" for place in range(BINS))
TIMES = ("leaveAt", "arriveBy", "time")
HOURS = tuple(f"{hour:02d}h" for hour in range(25))  # 24:30 is a time in the corpus
MINUTES = tuple(f"{minute:02d}m" for minute in range(60))


class Words:
    """The words of a world.

    Args:
        world: its values.
    """

    tokenizer = "word"

    def __init__(self, world: World) -> None:
        self.world = world
        self._vectoriser = Vectoriser(world.database, Fidelity())
        kinds = [*(_kind(e) for e in (*SYSTEM_ENTRIES, *USER_ENTRIES)), *_own_kinds()]
        slots = [_slot(entry) for entry in SYSTEM_ENTRIES]
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
        self._word = _words_of((DONTCARE, ANY, *every), self._fixed)
        self._value = {word: value for value, word in self._word.items()}
        self.vocabulary: Sequence[str] = (*self._fixed, *self._word.values())
        self.charset = "".join(sorted({" ", *"".join(self.vocabulary)}))
        self._kinds = {_kind_word(d, i): (d, i) for d, i in _all_kinds()}
        self._entries = {(_kind(e), _slot(e)): n for n, e in enumerate(SYSTEM_ENTRIES)}
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
        return {SYSTEM: self._system_grammar(), USER: self._user_grammar()}

    def _system_grammar(self) -> Grammar:
        slots: dict[str, list[str]] = {}
        for entry in SYSTEM_ENTRIES:
            slots.setdefault(_kind(entry), []).append(_slot(entry))
        nodes: dict[str, dict[str, str]] = {}
        for count in range(MOST + 1):
            after = {k: f"{k} {count}" for k in slots} if count < MOST else {}
            nodes[f"acts {count}"] = after
            for kind, known in slots.items() if count < MOST else ():
                named = {s: f"{kind} said {count + 1}" for s in known if s != NONE}
                alone = nodes_after(slots, count + 1) if NONE in known else {}
                nodes[f"{kind} {count}"] = {**alone, **named}
                nodes[f"{kind} said {count}"] = {**after, **named}
        for kind in slots:
            nodes[f"{kind} said {MOST}"] = {}
        ends = [f"{kind} said {count}" for kind in slots for count in range(1, MOST + 1)]
        ends += [f"{k} {count}" for k, s in slots.items() if NONE in s for count in range(MOST)]
        return Grammar(nodes, "acts 0", ends)

    def _user_grammar(self) -> Grammar:
        nodes: dict[str, dict[str, str]] = {}
        asked = {_kind_word(act_domain(d), REQUEST): d for d in DOMAINS if REQUESTABLE[d]}
        told = {_kind_word(act_domain(d), "Inform"): d for d in DOMAINS}
        plain = [f"general-{intent}" for intent in ("bye", "greet", "thank")]
        for count in range(MOST + 1):
            more = dict.fromkeys(plain, f"acts {count + 1}")
            more |= {k: f"{k} {count}" for k in (*asked, *told)}
            more = more if count < MOST else {}
            nodes[f"acts {count}"] = more
            if count == MOST:
                break
            for kind, domain in asked.items():
                after = f"{kind} said {count + 1}"
                slots = {_short(domain, slot): after for slot in REQUESTABLE[domain]}
                nodes[f"{kind} {count}"] = slots
                nodes[f"{kind} said {count}"] = {**more, **slots}
            for kind, domain in told.items():
                slots = self._told_nodes(nodes, kind, domain, count)
                nodes[f"{kind} {count}"] = {**self._user_kinds(count + 1), **slots}
                nodes[f"{kind} said {count}"] = {**more, **slots}
        for kind in (*asked, *told):
            nodes[f"{kind} said {MOST}"] = {}
        for count in range(1, MOST):
            nodes[f"{kind} said {count}"] |= {}
        ends = [f"acts {count}" for count in range(1, MOST + 1)]
        ends += [f"{kind} said {count}" for kind in (*asked, *told) for count in range(1, MOST + 1)]
        ends += [f"{kind} {count}" for kind in told for count in range(MOST)]
        return Grammar(nodes, "acts 0", ends)

    def _user_kinds(self, count: int) -> dict[str, str]:
        """What may follow a kind that is said alone, as the act number `count`."""
        if count >= MOST:
            return {}
        plain = {f"general-{intent}": f"acts {count + 1}" for intent in ("bye", "greet", "thank")}
        kinds = [_kind_word(act_domain(d), i) for d in DOMAINS for i in ("Inform", REQUEST)
                 if i == "Inform" or REQUESTABLE[d]]  # fmt: skip
        return {**plain, **{kind: f"{kind} {count}" for kind in kinds}}

    def _told_nodes(
        self, nodes: dict[str, dict[str, str]], kind: str, domain: str, count: int
    ) -> dict[str, str]:
        """The slots that may be told, each with a node for its value."""
        after, slots = f"{kind} said {count + 1}", {}
        for slot in (*INFORMABLE[domain], *BOOKABLE[domain]):
            node = f"{kind} {slot} {count}"
            slots[_short(domain, slot)] = node
            if slot in TIMES:
                nodes[node] = dict.fromkeys(HOURS, f"minute {kind} {count}")
                nodes[node][self._word[DONTCARE]] = after
                nodes[f"minute {kind} {count}"] = dict.fromkeys(MINUTES, after)
            else:
                values = (*self._values[domain, slot], DONTCARE)
                nodes[node] = {self._word[value]: after for value in values}
        if "choice" in SHORT_NAMES[domain]:
            slots["choice"] = f"{kind} choice {count}"
            nodes[f"{kind} choice {count}"] = {self._word[ANY]: after}
        return {**slots, NOT_BOOK.lower(): after}

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
            kind, slot = _kind(entry), _slot(entry)
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
            kind = _kind_word(domain, intent)
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

    def hear(self, text: str, said: Acts, heard: Acts, belief: Belief, rng: Generator) -> str:
        """The words of what was heard, then what is believed of the domains that it was about."""
        words = self._spell(heard) or [SILENT]
        for domain in dict.fromkeys(act.domain.lower() for act in heard):
            if domain in TABLES:
                words += [BELIEVED, domain, *self._matches(domain, belief)]
        return " ".join(words[:HEARD])

    def _matches(self, domain: str, belief: Belief) -> Iterator[str]:
        known = belief.constraints.get(domain, {})
        yield MATCHES[self._vectoriser.bin(domain, known)]
        if domain in belief.booked:
            yield BOOKED
        for slot, value in known.items():
            yield _short(domain, slot)
            yield from self._spell_value(value)


def nodes_after(kinds: Iterable[str], count: int) -> dict[str, str]:
    """The kinds that may follow `count` acts."""
    return {kind: f"{kind} {count}" for kind in kinds} if count < MOST else {}


def _kind_word(domain: str, intent: str) -> str:
    return f"{domain}-{intent}".lower()


def _kind(entry: Entry) -> str:
    return _kind_word(entry.domain, entry.intent)


def _slot(entry: Entry) -> str:
    """``name``, ``name2`` of the second row; ``none``."""
    return f"{entry.slot.lower()}{entry.place if entry.place > 1 else ''}"


def _short(domain: str, slot: str) -> str:
    return SHORT_NAMES[domain][slot].lower()


def _own_kinds() -> list[str]:
    """The kinds of acts of the user that the corpus's 78 do not have."""
    return [_kind_word(act_domain(d), i) for d in DOMAINS for i in ("Inform", REQUEST)]


def _all_kinds() -> Iterator[tuple[str, str]]:
    for entry in (*SYSTEM_ENTRIES, *USER_ENTRIES):
        yield entry.domain, entry.intent
    for domain in DOMAINS:
        yield act_domain(domain), "Inform"
        yield act_domain(domain), REQUEST


def _words_of(values: Iterable[str], taken: Iterable[str]) -> dict[str, str]:
    """A word of its own for each value; one that is taken already gets quotes."""
    used = set(taken)
    words: dict[str, str] = {}
    for value in values:
        if value in words:
            continue
        word = "_".join(value.split())
        while not word or word in used:
            word = f"'{word}'"
        used.add(word)
        words[value] = word
    return words
