"""The frames of sentences and the clauses in them, for each party, domain and intent."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import chain
from typing import NamedTuple

from dialgym.language.text import article
from dialgym.tasks.base import SYSTEM, USER
from dialgym.tasks.multiwoz.entries import REQUEST
from dialgym.tasks.multiwoz.languages.phrases import (
    ABOUT,
    ANNOUNCED,
    ASKING,
    ATTRIBUTES,
    BOOKED,
    BOOKING_FRAMES,
    FIXED,
    LABELS,
    LIMITS,
    NAMED,
    NOUNS,
    OFFERS,
    OWN_ATTRIBUTES,
    OWN_FRAMES,
    OWN_LABELS,
    OWN_PREDICATES,
    OWN_SENTENCES,
    PREDICATES,
    QUESTIONS,
    REQUESTED,
    SYSTEM_FRAMES,
    TOLD,
    USER_FRAMES,
    WHOLE,
    Texts,
)
from dialgym.tasks.multiwoz.ontology import SLOT_NAMES
from dialgym.tasks.multiwoz.types import ASKED, Acts, DialogueAct

INFORM = "Inform"
Kind = tuple[str, str]
"""Domain and intent."""


class Clause(NamedTuple):
    """A piece of a sentence.

    Attributes:
        text: with ``{}`` where its value stands.
        slot: its short name.
        value: where the clause says one by itself; None where it stands in the text.
    """

    text: str
    slot: str
    value: str | None = None

    def ends(self) -> Iterator[tuple[str, str]]:
        """Texts before and after the value, in small letters; with each article."""
        texts = {self.text.replace("{article}", one) for one in ("a", "an")}
        for text in sorted(texts):
            before, _, after = text.lower().partition("{}")
            yield before, after


@dataclass(frozen=True, eq=False)
class Frame:
    """A sentence, but for its clauses.

    Attributes:
        text: with ``{}`` where the clauses stand, if there are any.
        kind: what its clauses are about.
        said: the acts that it says by itself.
        clauses: those that it can have.
    """

    text: str
    kind: Kind
    said: Acts = ()
    clauses: Sequence[Clause] = ()

    @cached_property
    def texts(self) -> Mapping[tuple[str, str | None], Sequence[str]]:
        """Slot and value, or any with None, -> the texts of the clauses that say it."""
        found: dict[tuple[str, str | None], list[str]] = {}
        for text, slot, value in self.clauses:
            found.setdefault((slot, value), []).append(text)
        return found


# Clauses


def label(domain: str, slot: str) -> str:
    """Name of a slot of a domain."""
    return OWN_LABELS.get((domain, slot)) or LABELS[slot][0]


def _slots(domain: str) -> Iterable[str]:
    """The short names of the slots that can be said of a domain."""
    return dict.fromkeys((*SLOT_NAMES[domain], "Choice"))


def _predicate(text: str) -> str:
    """Turn an attribute of a noun into a predicate: ``has internet`` for ``with internet``."""
    for before, instead in (("with or", "is with or"), ("with ", "has "), ("without ", "has no "),
                            ("that ", "")):  # fmt: skip
        if text.startswith(before):
            return instead + text[len(before) :]
    return f"is {text}"


@cache
def attributes(domain: str, times: str) -> tuple[Clause, ...]:
    """Attributes of slots and values behind a noun; times are facts, ``limits`` or ``offers``."""
    limits: Mapping[str, Texts] = {"limits": LIMITS, "offers": OFFERS}.get(times, {})
    found = [
        Clause(text, slot, value)
        for (slot, value), texts in FIXED.items()
        for text in texts
        if slot in _slots(domain)
    ]
    for slot in _slots(domain):
        usual = ATTRIBUTES[slot]
        texts = OWN_ATTRIBUTES.get((domain, slot)) or limits.get(slot) or usual
        found += [Clause(text, slot) for text in texts]
        found += [
            Clause(text.format(label(domain, slot)), slot, value)
            for value, texts in ABOUT.items()
            if (slot, value) not in FIXED
            for text in texts
        ]
    return tuple(found)


@cache
def predicates(domain: str) -> tuple[Clause, ...]:
    """The same behind a subject."""
    found = []
    for text, slot, value in attributes(domain, "facts"):
        texts = OWN_PREDICATES.get((domain, slot)) or PREDICATES.get(slot)
        if value is not None or texts is None:
            texts = (_predicate(text),)
        found += [Clause(text, slot, value) for text in texts]
    return tuple(dict.fromkeys(found))


@cache
def questions(domain: str) -> tuple[Clause, ...]:
    """Questions of the system."""
    return tuple(
        [
            Clause(QUESTIONS.get(slot) or f"what is the {label(domain, slot)}", slot, ASKED)
            for slot in _slots(domain)
        ]
    )


@cache
def requests(domain: str, nouns: bool) -> tuple[Clause, ...]:
    """Questions of the user; of `nouns` alone those slots that are one."""
    return tuple(
        [
            Clause(REQUESTED.get(slot) or f"the {label(domain, slot)}", slot, ASKED)
            for slot in _slots(domain)
            if not (nouns and slot in REQUESTED)
        ]
    )


def _clauses(party: str, kind: Kind, style: str) -> Sequence[Clause]:
    domain, intent = kind
    if intent == REQUEST:
        return questions(domain) if party == SYSTEM else requests(domain, style == ASKING)
    if party == SYSTEM and intent == INFORM and domain in NOUNS and kind not in OWN_FRAMES:
        return predicates(domain)
    limits = party == USER or intent == "NoOffer"
    return attributes(domain, "limits" if limits else "offers" if intent == "OfferBook" else "")


# Frames


@cache
def frames(party: str) -> Mapping[tuple[Kind, str], Sequence[Frame]]:
    """Kind and style -> the frames that a party has for it."""
    by_intent = USER_FRAMES if party == USER else SYSTEM_FRAMES
    texts: dict[Kind, Mapping[str, Texts]] = {
        (domain, intent): styles for domain in NOUNS for intent, styles in by_intent.items()
    }
    if party == USER:
        for domain, booking in BOOKING_FRAMES.items():
            texts[domain, INFORM] = {**texts[domain, INFORM], BOOKED: booking}
    texts |= OWN_FRAMES
    return {
        (kind, style): [_frame(text, party, kind, style) for text in known]
        for kind, styles in texts.items()
        for style, known in styles.items()
    }


def _frame(text: str, party: str, kind: Kind, style: str) -> Frame:
    said = (DialogueAct(kind[1], kind[0]),) if style in (WHOLE, ANNOUNCED) else ()
    clauses = () if style == WHOLE else _clauses(party, kind, style)
    return Frame(_of_domain(text, kind[0]), kind, said, clauses)


def _of_domain(text: str, domain: str) -> str:
    """A frame with the noun of a domain."""
    noun, plural = NOUNS.get(domain, ("", ""))
    named = {"noun": noun, "plural": plural, "a": f"{article(noun)} {noun}", "the": f"the {noun}"}
    for name, written in named.items():
        text = text.replace(f"{{{name}}}", written)
    return text


@cache
def own_frames(party: str) -> Mapping[tuple[Kind, str, str | None], Sequence[Frame]]:
    """Kind, slot and value, or any with None, -> sentences for that act alone."""
    found: dict[tuple[Kind, str, str | None], list[Frame]] = {}
    for (who, slot), by_value in OWN_SENTENCES.items():
        for domain in NOUNS if who == party else ():
            for value, texts in by_value.items():
                kind = (domain, INFORM)
                said = () if value is None else (DialogueAct(INFORM, domain, slot, value),)
                clauses = (Clause("{}", slot),) if value is None else ()
                found[kind, slot, value] = [
                    Frame(_of_domain(text, domain), kind, said, clauses) for text in texts
                ]
    return found


@cache
def all_frames(party: str) -> Sequence[Frame]:
    """Those of a party."""
    return [*chain(*frames(party).values(), *own_frames(party).values())]


def style_of(party: str, kind: Kind, slots: Sequence[str], bookable: Iterable[str]) -> str:
    """Frame of acts of a kind about some slots."""
    if party == USER and kind[1] == INFORM and set(slots) <= set(bookable):
        return BOOKED
    if party == SYSTEM and kind[1] == INFORM and "Name" in slots:
        return NAMED
    if party == USER and kind[1] == REQUEST and not set(slots) & set(REQUESTED):
        return ASKING
    return TOLD
