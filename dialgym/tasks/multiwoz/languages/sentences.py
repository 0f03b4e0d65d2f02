"""Reads the templates' sentences back into the acts that they were made of, exactly."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

from dialgym.tasks.base import SYSTEM, USER
from dialgym.tasks.multiwoz.data import World
from dialgym.tasks.multiwoz.languages.frames import Clause, Frame, all_frames
from dialgym.tasks.multiwoz.ontology import DOMAINS, SLOT_NAMES, act_domain
from dialgym.tasks.multiwoz.slot_values import slot_values
from dialgym.tasks.multiwoz.types import Acts, DialogueAct

PARTIES = (SYSTEM, USER)
SEPARATORS = (", and ", ", ", " and ", " or ")
PLAIN = re.compile(r"[0-9A-Za-z]+")
TIME = re.compile(r"[0-9]{1,2}:[0-9]{2}")
"""Values that stand in a sentence as they are, though they are not known."""
TIMES = ("Arrive", "Leave", "Time")
"""The slots that have times."""


ClausesByWord = Mapping[str, Sequence[tuple[str, str, Clause]]]


class _Opening(NamedTuple):
    """Reader of a frame.

    Attributes:
        before, after: its clauses, in small letters.
        frame: the frame.
        clauses: by their first word what stands before and after a value in small letters, the
            longest first, and the clause.
    """

    before: str
    after: str
    frame: Frame
    clauses: ClausesByWord


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
        for before, after, frame, clauses in self._openings[party].get(_word(small, place), ()):
            if not small.startswith(before, place):
                continue
            end = place + len(before)
            if not clauses and text[end : end + 1] in ("", " "):
                return list(frame.said), end
            found = self._read_clauses(text, small, end, clauses, after) if clauses else None
            if found is not None:
                domain, intent = frame.kind
                told = [DialogueAct(intent, domain, *pair) for pair in found[0]]
                return [*frame.said, *told], found[1]
        return None

    def _read_clauses(
        self,
        text: str,
        small: str,
        place: int,
        clauses: ClausesByWord,
        after: str,
    ) -> tuple[list[tuple[str, str]], int] | None:
        """The slots and values of clauses up to the end of the sentence, and where it ends."""
        for pair, end in self._read_clause(text, small, place, clauses):
            last = end + len(after)
            if small.startswith(after, end) and text[last : last + 1] in ("", " "):
                return [pair], last
            for separator in SEPARATORS:
                if small.startswith(separator, end):
                    place = end + len(separator)
                    rest = self._read_clauses(text, small, place, clauses, after)
                    if rest is not None:
                        return [pair, *rest[0]], rest[1]
        return None

    def _read_clause(
        self, text: str, small: str, place: int, clauses: ClausesByWord
    ) -> Iterator[tuple[tuple[str, str], int]]:
        """Each way to read a clause: its slot and value, and where it ends."""
        known = clauses.get(_word(small, place)) or clauses.get("", ())
        for before, after, (_, slot, value) in known:
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
        plain = (TIME.match(text, start) if slot in TIMES else None) or PLAIN.match(text, start)
        if plain is not None:
            yield plain.group(), plain.end()

    def stands_alone(self, slot: str, value: str) -> bool:
        """Return True if a value needs no quotes in a sentence."""
        time = slot in TIMES and TIME.fullmatch(value)
        return value in self.values.get(slot, ()) or bool(time or PLAIN.fullmatch(value))

    @cached_property
    def _openings(self) -> Mapping[str, Mapping[str, Sequence[_Opening]]]:
        """By party and first word."""
        return {party: _by_word(map(_opening, all_frames(party))) for party in PARTIES}

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


def _opening(frame: Frame) -> _Opening:
    before, _, after = frame.text.lower().partition("{}")
    ends = [(*end, clause) for clause in frame.clauses for end in clause.ends()]
    return _Opening(before, after, frame, _by_word(ends))


T = TypeVar("T", bound=tuple[Any, ...])


def _by_word(known: Iterable[T]) -> Mapping[str, Sequence[T]]:
    """Entries by the first word of their text; the longest text first."""
    found: dict[str, list[T]] = {}
    for one in sorted(known, key=lambda one: -len(one[0])):
        found.setdefault(_word(one[0], 0), []).append(one)
    return found


def _word(text: str, place: int) -> str:
    """The text from a place to the next space."""
    end = text.find(" ", place)
    return text[place:] if end < 0 else text[place:end]


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
