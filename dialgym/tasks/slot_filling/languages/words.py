"""Acts as words, each of which is a token: ``inform food north_american area centre``.

Of what the user may have said the system hears each hypothesis behind a word that says how likely
it is, in tenths: ``p8 inform food thai p1 request phone``. An act is a type and for each item a
slot and a value, ``not`` between them where the value is ruled out; a value is one word.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np

from dialgym.language import Grammar
from dialgym.language.acts import Act, Hypotheses, SlotValue
from dialgym.language.text import joined, words_for
from dialgym.tasks.base import SYSTEM, USER
from dialgym.tasks.slot_filling.domain.database import MISSING
from dialgym.tasks.slot_filling.domain.domain import Domain
from dialgym.tasks.slot_filling.domain.ontology import DONTCARE, NAME, NONE, TYPE
from dialgym.tasks.slot_filling.languages.notation import (
    MOST_NAMES,
    longest_act,
    ordinary_texts,
)

Generator = np.random.Generator
TYPES = ("inform", "request", "confirm", "select", "affirm", "negate", "deny", "reqalts", "hello",
         "bye", "thankyou", "ack", "repeat", "reqmore", "restart", "silence", "null",
         "inform_byname", "inform_alternatives")  # fmt: skip
"""Of acts; the last two are summary acts alone."""
USER_ACTS = ("inform", "request", "confirm", "affirm", "negate", "deny", "reqalts", "hello", "bye",
             "thankyou", "ack", "repeat", "silence", "restart")  # fmt: skip
"""Those that the user can mean to say."""
_AFTER = {
    "request": "ask",
    **dict.fromkeys(("inform", "confirm", "deny"), "tell"),
    **dict.fromkeys(("bye", "thankyou", "ack", "repeat", "silence", "restart"), "nothing"),
}
"""Continuation after the type of an act; after others may follow what they tell."""
MOST = 6
"""Items that one act of the user may have."""
NOT = "not"
CONFIDENCES = tuple(f"p{tenth}" for tenth in range(11))
SINGLE, LIST = 16, 24
"""Words of what the system hears: one hypothesis, or as many as there is room for.

Of lists in noise, one in a hundred is longer; what it loses is believed least.
"""
PHRASE, TOLD = 2, 40
"""Words of a summary act, and of what the user hears; more, as of many names, are left out."""
MOST_WORDS = 300_000
"""Words of a domain. So many take 0.9 GB with action masks, the first of which takes 9 seconds."""


class SlotFillingWords:
    """The words of a domain.

    Args:
        domain: the slots and values.
        hypotheses: how many the system hears.
    """

    tokenizer = "word"
    summaries = True

    def __init__(self, domain: Domain, hypotheses: int) -> None:
        ontology = domain.ontology
        slots = dict.fromkeys((TYPE, *ontology.informable, *ontology.requestable))
        self._slots = frozenset(slots)
        fixed = tuple(dict.fromkeys((*TYPES, NOT, *CONFIDENCES, *slots)))
        self._word = words_for(_values(domain), fixed)
        self._value = {word: value for value, word in self._word.items()}
        self.vocabulary: Sequence[str] = (*fixed, *self._word.values())
        self._check_size()
        self._most = SINGLE if hypotheses == 1 else LIST
        self.charset = "".join(sorted({" ", *"".join(self.vocabulary)}))
        self._domain = domain
        self.longest = self._longest(domain)
        self.ordinary = ordinary_texts(domain, hypotheses)
        self.words = self._most_words(domain)

    def _check_size(self) -> None:
        if len(self.vocabulary) > MOST_WORDS:
            raise ValueError(
                f"language='words' of SlotFilling: the domain has {len(self.vocabulary):,} words; "
                f"at most {MOST_WORDS:,}, as each is a token and masks weigh all of them. Use the "
                "act view or language='acts', or a domain whose rows share values."
            )

    def _longest(self, domain: Domain) -> Mapping[str, int]:
        widest = 1 + max(map(len, self.vocabulary))
        said = longest_act(domain) + MOST_NAMES
        return {SYSTEM: said, USER: widest * (self._most_words(domain)[USER][USER] + 1)}

    def _most_words(self, domain: Domain) -> Mapping[str, Mapping[str, int]]:
        ontology = domain.ontology
        note = 2 + 2 * len(ontology.system_requestable) + len(ontology.requestable)
        return {
            SYSTEM: {SYSTEM: PHRASE, USER: self._most},
            USER: {SYSTEM: TOLD, USER: max(note, self._most)},
        }

    @cached_property
    def grammar(self) -> Grammar:
        """Grammar of the user: acts of up to six items.

        A slot that is told has one of its values; one that is asked for has none, but for the name.
        """
        nodes: dict[str, Mapping[str, str]] = {"nothing": {}}
        nodes["act"] = {kind: _AFTER.get(kind, "told 0") for kind in USER_ACTS}
        for count in range(MOST):
            nodes |= self._told(count) | self._asked(count)
        nodes |= {f"told {MOST}": {}, f"asked {MOST}": {}, f"asked {MOST} name": {}}
        nodes |= {"tell": nodes["told 0"], "ask": nodes["asked 0"]}
        return Grammar(
            nodes, "act", [n for n in nodes if n.startswith(("told", "asked", "nothing"))]
        )

    def _told(self, count: int) -> dict[str, dict[str, str]]:
        """Continuation after `count` items are told: a slot, and then its value."""
        ontology, word = self._domain.ontology, self._word
        slots = {TYPE: (ontology.type,), **ontology.informable}
        after = f"told {count + 1}"
        nodes = {f"told {count}": {slot: f"value of {slot} {count}" for slot in slots}}
        nodes[f"told {count}"][word[DONTCARE]] = after
        for slot, values in slots.items():
            words = (word[value] for value in (*values, DONTCARE))
            nodes[f"value of {slot} {count}"] = dict.fromkeys(words, after)
        return nodes

    def _asked(self, count: int) -> dict[str, dict[str, str]]:
        """Continuation after `count` slots are asked for: another, or a name after its slot."""
        ontology, after = self._domain.ontology, f"asked {count + 1}"
        slots = {**dict.fromkeys(ontology.requestable, after), NAME: f"{after} name"}
        names = (self._word[name] for name in ontology.informable[NAME])
        named = {**slots, **dict.fromkeys(names, after)}
        return {f"asked {count}": slots, f"asked {count} name": named}

    def say(self, act: Act, party: str, rng: Generator) -> str:
        """The words of an act."""
        words = self._spell(act)
        return " ".join(words if party == USER else words[:TOLD])

    def _spell(self, act: Act) -> list[str]:
        words = [act.type]
        for slot, value, negated in act.items:
            if slot:
                words.append(slot)
            if negated:
                words.append(NOT)
            if value is not None:
                words.append(self._word.get(value) or joined(value))
        return words

    def understand(self, text: str, party: str) -> Act | None:
        """The act of some words; None where one of them is unknown or out of place."""
        kind, *rest = text.split() or [""]
        if kind not in TYPES:
            return None
        items = self._items(rest)
        return None if items is None else Act(kind, items)

    def _items(self, words: Sequence[str]) -> tuple[SlotValue, ...] | None:
        items: list[SlotValue] = []
        place, end = 0, len(words)
        while place < end:
            slot = words[place] if words[place] in self._slots else ""
            place += bool(slot)
            negated = place < end and words[place] == NOT
            place += negated
            value = self._value.get(words[place]) if place < end else None
            place += value is not None
            if value is None and (negated or not slot):
                return None
            items.append(SlotValue(slot, value, negated))
        return tuple(items)

    def hear(self, text: str, hypotheses: Hypotheses, rng: Generator) -> str:
        """The hypotheses, the best first, as far as there is room; ``null`` only where it is all.

        An act that is longer than the room is cut.
        """
        heard: list[str] = []
        known = [pair for pair in hypotheses if pair[0].type != "null"] or hypotheses[:1]
        for act, p in known:
            words = [CONFIDENCES[int(10 * p + 0.5)], *self._spell(act)]
            if heard and len(heard) + len(words) > self._most:
                break
            heard += words
        return " ".join(heard[: self._most])

    def note(self, wants: Act, asks: Act) -> str:
        """Both acts, one after the other."""
        return " ".join([*self._spell(wants), *self._spell(asks)])


def _values(domain: Domain) -> Iterator[str]:
    """All values once: those that nobody can ask for, only be told of, come last."""
    ontology = domain.ontology
    yield from (DONTCARE, NONE, ontology.type)
    for values in ontology.informable.values():
        yield from values
    told = {*ontology.informable, *ontology.requestable}
    for row in domain.database.rows:
        yield from (value for slot, value in row.items() if slot in told)
    yield MISSING
