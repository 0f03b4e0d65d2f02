"""Reads the templates' sentences back into the acts that they were made of, exactly."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from dialgym.tasks.base import SYSTEM, USER
from dialgym.tasks.multiwoz.data import World
from dialgym.tasks.multiwoz.entries import REQUEST
from dialgym.tasks.multiwoz.languages.phrases import (
    ANY_CLAUSE,
    CLAUSES,
    FIXED,
    LABELS,
    NO_CLAUSE,
    OWN_BEGINNINGS,
    SENTENCES,
    SOME_CLAUSE,
    SYSTEM_BEGINNINGS,
    THE,
    USER_BEGINNINGS,
    A,
)
from dialgym.tasks.multiwoz.ontology import DOMAINS, SLOT_NAMES, act_domain
from dialgym.tasks.multiwoz.slot_values import slot_values
from dialgym.tasks.multiwoz.types import ASKED, NONE, Acts, DialogueAct

Kind = tuple[str, str]
"""Domain and intent."""
SEPARATORS = (", and ", ", ", " and ")


def _beginnings(by_intent: Mapping[str, tuple[str, ...]]) -> dict[Kind, tuple[str, ...]]:
    return {
        (domain, intent): tuple([text.format(a=A[domain], the=THE[domain]) for text in texts])
        for domain in A
        for intent, texts in by_intent.items()
    }


BEGINNINGS: Mapping[str, Mapping[Kind, Sequence[str]]] = {
    USER: _beginnings(USER_BEGINNINGS),
    SYSTEM: {**_beginnings(SYSTEM_BEGINNINGS), **OWN_BEGINNINGS},
}
"""By party: how a sentence of a kind begins."""


class Clause(NamedTuple):
    """A piece of a sentence: words before and after a value, and what it says.

    Attributes:
        before, after: in small letters.
        slot: its short name.
        value: where the clause says one by itself; None where it stands between the words.
    """

    before: str
    after: str
    slot: str
    value: str | None


ABOUT = {"dontcare": (ANY_CLAUSE,), NONE: (NO_CLAUSE,), ASKED: (SOME_CLAUSE,)}
"""Value -> what is said of a slot's label."""


def _told() -> Iterator[Clause]:
    for (slot, value), texts in FIXED.items():
        yield from (Clause(text.lower(), "", slot, value) for text in texts)
    for slot, labels in LABELS.items():
        for value, texts in ABOUT.items():
            yield from (Clause(text.format(labels[0]), "", slot, value) for text in texts)
        for text in CLAUSES[slot]:
            before, _, after = text.partition("{}")
            yield Clause(before, after, slot, None)


_TOLD = sorted(_told(), key=lambda clause: -len(clause.before))
_ASKED = sorted(
    (Clause(f"the {labels[0]}", "", slot, ASKED) for slot, labels in LABELS.items()),
    key=lambda clause: -len(clause.before),
)


class Sentences:
    """The sentences of a world.

    Args:
        world: its values.
    """

    def __init__(self, world: World) -> None:
        self.values = values_of_slots(world)

    def read(self, text: str, party: str) -> Acts | None:
        """The acts of a text that is made of the templates' sentences; else None."""
        acts: list[DialogueAct] = []
        place, small = 0, text.lower()
        while place < len(text):
            found = self._read_sentence(text, small, place, party)
            if found is None:
                return None
            said, place = found
            acts += said
            place += place < len(text) and text[place] == " "
        return tuple(acts) if acts else None

    def _read_sentence(
        self, text: str, small: str, place: int, party: str
    ) -> tuple[list[DialogueAct], int] | None:
        for sentence, kind in self._wholes:
            if small.startswith(sentence, place):
                return [DialogueAct(kind[1], kind[0])], place + len(sentence)
        for begin, (domain, intent) in self._openings[party]:
            if not small.startswith(begin, place):
                continue
            after = place + len(begin)
            if text[after : after + 1] in (".", "?"):
                return [DialogueAct(intent, domain)], after + 1
            if text[after : after + 1] == " ":
                found = self._read_clauses(text, small, after + 1, intent == REQUEST)
                if found is not None:
                    said, end = found
                    return [DialogueAct(intent, domain, *pair) for pair in said], end
        return None

    def _read_clauses(
        self, text: str, small: str, place: int, asks: bool
    ) -> tuple[list[tuple[str, str]], int] | None:
        """The slots and values of clauses up to the end of the sentence, and where it ends."""
        for pair, end in self._read_clause(text, small, place, asks):
            if text[end : end + 1] in (".", "?") and text[end + 1 : end + 2] in ("", " "):
                return [pair], end + 1
            for separator in SEPARATORS:
                if small.startswith(separator, end):
                    rest = self._read_clauses(text, small, end + len(separator), asks)
                    if rest is not None:
                        return [pair, *rest[0]], rest[1]
        return None

    def _read_clause(
        self, text: str, small: str, place: int, asks: bool
    ) -> Iterator[tuple[tuple[str, str], int]]:
        """Each way to read a clause: its slot and value, and where it ends."""
        for before, after, slot, value in _ASKED if asks else _TOLD:
            if not small.startswith(before, place):
                continue
            start = place + len(before)
            if value is not None:
                yield (slot, value), start
                continue
            for found, end in self._read_value(text, start, slot):
                if small.startswith(after, end):
                    yield (slot, found), end + len(after)

    def _read_value(self, text: str, start: int, slot: str) -> Iterator[tuple[str, int]]:
        if text[start : start + 1] == '"':
            quoted = _read_quoted(text, start + 1)
            if quoted is not None:
                yield quoted
            return
        for value in self._longest_first.get(slot, {}).get(text[start : start + 1], ()):
            if text.startswith(value, start):
                yield value, start + len(value)
        end = start
        while end < len(text) and text[end].isalnum() and text[end].isascii():
            end += 1
        if end > start:
            yield text[start:end], end

    @cached_property
    def _openings(self) -> Mapping[str, Sequence[tuple[str, Kind]]]:
        """By party: how sentences begin, in small letters and the longest first, and the kind."""
        found = {
            party: [(text.lower(), kind) for kind, texts in kinds.items() for text in texts]
            for party, kinds in BEGINNINGS.items()
        }
        return {p: sorted(pairs, key=lambda pair: -len(pair[0])) for p, pairs in found.items()}

    @cached_property
    def _wholes(self) -> Sequence[tuple[str, Kind]]:
        pairs = [(text.lower(), kind) for kind, texts in SENTENCES.items() for text in texts]
        return sorted(pairs, key=lambda pair: -len(pair[0]))

    @cached_property
    def _longest_first(self) -> Mapping[str, Mapping[str, Sequence[str]]]:
        """Slot -> first letter -> its known values, the longest first."""
        found: dict[str, dict[str, list[str]]] = {}
        for slot, values in self.values.items():
            by_letter = found.setdefault(slot, {})
            for value in sorted(values, key=len, reverse=True):
                by_letter.setdefault(value[:1], []).append(value)
        return found


def values_of_slots(world: World) -> Mapping[str, frozenset[str]]:
    """Short name of a slot -> all values that it is known to have in any domain."""
    found: dict[str, set[str]] = {}
    for domain in DOMAINS:
        for short, slot in SLOT_NAMES[act_domain(domain)].items():
            found.setdefault(short, set()).update(slot_values(world, domain, slot))
    return {short: frozenset(values) for short, values in found.items()}


def _read_quoted(text: str, start: int) -> tuple[str, int] | None:
    """The text up to the closing quote, and the place after it."""
    letters: list[str] = []
    place = start
    while place < len(text):
        if text[place] == "\\" and place + 1 < len(text):
            letters.append(text[place + 1])
            place += 2
        elif text[place] == '"':
            return "".join(letters), place + 1
        else:
            letters.append(text[place])
            place += 1
    return None
