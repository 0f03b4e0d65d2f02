"""Keyword spotting of domains, slots and values.

An act about a domain that is not to be told from the words alone has none, ``""``; the task takes
it for the one that is talked about.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from dialgym.tasks.base import USER
from dialgym.tasks.multiwoz.agenda import DONTCARE
from dialgym.tasks.multiwoz.data import World
from dialgym.tasks.multiwoz.languages.phrases import LABELS
from dialgym.tasks.multiwoz.ontology import (
    BOOKABLE,
    BOOKING,
    DOMAINS,
    GENERAL,
    INFORMABLE,
    REQUESTABLE,
    SHORT_NAMES,
    act_domain,
)
from dialgym.tasks.multiwoz.slot_values import slot_values
from dialgym.tasks.multiwoz.types import ASKED, Acts, DialogueAct

DOMAIN_WORDS: Mapping[str, tuple[str, ...]] = {
    "attraction": ("attraction", "attractions", "something to see", "things to do", "sights"),
    "hospital": ("hospital",),
    "hotel": ("hotel", "hotels", "place to stay", "somewhere to stay", "room", "rooms"),
    "police": ("police", "police station"),
    "restaurant": ("restaurant", "restaurants", "place to eat", "somewhere to eat", "table"),
    "taxi": ("taxi", "cab"),
    "train": ("train", "trains", "train ticket"),
}
PLAIN: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    USER: {
        "bye": ("bye", "goodbye", "that is all", "that's all", "that will be all", "no more"),
        "thank": ("thank you", "thanks"),
        "greet": ("hello", "hi", "good morning"),
    },
    "system": {
        "bye": ("bye", "goodbye"),
        "welcome": ("welcome", "my pleasure"),
        "reqmore": ("anything else", "something else"),
        "greet": ("hello", "hi"),
    },
}
ASKING = frozenset(
    ("what", "what's", "which", "where", "when", "how", "tell", "give", "know", "need", "get")
)
INDIFFERENT = ("do not care", "don't care", "any", "does not matter", "doesn't matter", "whatever")
NOTHING = ("no", "sorry", "nothing", "none", "not", "cannot", "can't")
NUMBERS = {"one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8}
COUNTED: Mapping[str, tuple[str, ...]] = {
    "People": ("people", "persons", "person", "guests", "of us", "adults"),
    "Stay": ("nights", "night"),
    "Stars": ("stars", "star"),
    "Choice": ("choices", "options", "matches"),
}
_TOKEN = re.compile(r"\d{1,2}:\d{2}|[\w'&./-]*[\w'&/-]|\?")
_TIME = re.compile(r"\d{1,2}:\d{2}")
_LONG = re.compile(r"(?:\d[ -]?){10,11}")
_REFERENCE = re.compile(r"\b\d{8}\b")
LONGEST = 9
"""Words of the longest phrase that is looked for."""
YES_NO = ("Internet", "Parking")


class Found(NamedTuple):
    """A phrase of a text: the domains it may be about, a slot, and a value or ``?``."""

    domains: tuple[str, ...]
    slot: str
    value: str


class Keywords:
    """Looks for what is known in a world.

    Args:
        world: its values.
    """

    def __init__(self, world: World) -> None:
        self._domain = {w: d for d, words in DOMAIN_WORDS.items() for w in words}
        self._label = {label: slot for slot, labels in LABELS.items() for label in labels}
        self._value: dict[str, list[tuple[str, str, str]]] = {}
        for domain in DOMAINS:
            for slot in (*INFORMABLE[domain], *BOOKABLE[domain]):
                if slot in ("people", "stay", "stars", *_TIMES):
                    continue
                for value in slot_values(world, domain, slot):
                    key = " ".join(_tokens(value))
                    if key.removeprefix("the ") not in self._domain:
                        self._value.setdefault(key, []).append((domain, slot, value))

    def read(self, text: str, party: str) -> Acts:
        """The acts that the words tell of."""
        tokens = _tokens(text)
        spans = list(self._spans(tokens))
        mentioned = [self._domain[span] for span in spans if span in self._domain]
        found = list(self._found(tokens, spans, text))
        domain = self._about(mentioned, found)
        asks = "?" in tokens or bool(ASKING & set(tokens[:4]))
        acts = [self._act(one, domain, party) for one in _merged(found, asks)]
        acts += self._refusal(tokens, acts, domain, party)
        if not acts and mentioned and party == USER:
            acts = [DialogueAct("Inform", act_domain(mentioned[-1]))]
        said = [act for act in acts if act is not None]
        return tuple(dict.fromkeys(said)) or tuple(_plain(" ".join(tokens), party))

    def _spans(self, tokens: Sequence[str]) -> Iterator[str]:
        """The longest known phrases from left to right, and the words between."""
        place = 0
        while place < len(tokens):
            for length in range(min(LONGEST, len(tokens) - place), 0, -1):
                phrase = " ".join(tokens[place : place + length])
                known = phrase in self._value or phrase in self._label or phrase in self._domain
                if known or length == 1:
                    yield phrase
                    place += length
                    break

    def _found(self, tokens: Sequence[str], spans: Sequence[str], text: str) -> Iterator[Found]:
        indifferent = any(f" {cue} " in f" {' '.join(tokens)} " for cue in INDIFFERENT)
        for place, span in enumerate(spans):
            before = spans[place - 1] if place else ""
            after = spans[place + 1] if place + 1 < len(spans) else ""
            if _TIME.fullmatch(span):
                yield Found((), _time_slot(spans[:place]), span.zfill(5))
            elif span.isdigit() or span in NUMBERS:
                slot = next((s for s, units in COUNTED.items() if after.startswith(units)), None)
                if slot is not None:
                    yield Found((), slot, str(NUMBERS.get(span, span)))
            elif span in self._value and span not in self._domain:
                yield from self._valued(span, before)
            elif span in self._label:
                slot = self._label[span]
                if slot in YES_NO:
                    yield Found(("hotel",), slot, "no" if before in ("no", "without") else "yes")
                else:
                    yield Found((), slot, DONTCARE if indifferent else ASKED)
        for number in _REFERENCE.findall(text):
            yield Found((), "Ref", number)
        for number in _LONG.findall(text):
            yield Found((), "Phone", re.sub(r"\D", "", number))

    def _valued(self, span: str, before: str) -> Iterator[Found]:
        """A value; the way of a train or taxi tells from where to where by the word before."""
        if span in ("yes", "no"):
            return
        options = self._value[span]
        end = {"from": "departure", "to": "destination"}.get(before)
        if end is not None:
            options = [option for option in options if option[1] == end] or options
        elif any(slot not in ("departure", "destination") for _, slot, _ in options):
            options = [o for o in options if o[1] not in ("departure", "destination")]
        short = [(d, SHORT_NAMES[d][slot], value) for d, slot, value in options]
        _, slot, value = short[0]
        yield Found(tuple([d for d, s, _ in short if s == slot]), slot, value)

    def _about(self, mentioned: Sequence[str], found: Sequence[Found]) -> str:
        """The domain of the words: one that is named, else the only one that fits all values."""
        for domain in reversed(mentioned):
            if all(domain in one.domains for one in found if one.domains):
                return domain
        fitting = [set(one.domains) for one in found if one.domains]
        common = set.intersection(*fitting) if fitting else set()
        if len(common) == 1:
            return common.pop()
        return mentioned[-1] if mentioned else ""

    def _act(self, one: Found, domain: str, party: str) -> DialogueAct | None:
        domains, slot, value = one
        about = domain if not domains or domain in domains else domains[0]
        if len(domains) > 1 and not domain:
            about = ""
        name = act_domain(about) if about else ""
        if value == ASKED:
            asked = REQUESTABLE if party == USER else _SAYABLE
            if about and slot not in {SHORT_NAMES[about].get(s) for s in asked[about]}:
                return None
            return DialogueAct("Request", name, slot, ASKED)
        if slot == "Ref" and party != USER:
            return DialogueAct("Book", BOOKING, "Ref", value)
        return about_domain(DialogueAct("Inform", name, slot, value), about)

    def _refusal(
        self, tokens: Sequence[str], acts: list[DialogueAct | None], domain: str, party: str
    ) -> list[DialogueAct]:
        """That the system has nothing of the kind; what it says of values is what it lacks."""
        if party == USER or not tokens or tokens[0] not in NOTHING:
            return []
        acts[:] = [a._replace(intent="NoOffer") if a and a.intent == "Inform" else a for a in acts]
        return [] if acts else [DialogueAct("NoOffer", act_domain(domain) if domain else "")]


_TIMES = ("leaveAt", "arriveBy", "time")
_SAYABLE = {d: (*INFORMABLE[d], *BOOKABLE[d]) for d in DOMAINS}


def about_domain(act: DialogueAct, domain: str) -> DialogueAct:
    """The act about a domain, in which a time may be called otherwise."""
    slot = act.slot
    if slot == "Leave" and domain == "restaurant":
        slot = "Time"
    return act._replace(domain=act_domain(domain) if domain else "", slot=slot)


def _tokens(text: str) -> list[str]:
    return [token.lower().rstrip(".") for token in _TOKEN.findall(text)]


def _time_slot(before: Sequence[str]) -> str:
    """Kind of a time: of arrival, of a table, or of leaving."""
    near = set(before[-4:])
    if near & {"by", "arrive", "arrives", "arriving", "before"}:
        return "Arrive"
    return "Time" if near & {"table", "book", "reserve", "restaurant"} else "Leave"


def _merged(found: Sequence[Found], asks: bool) -> Iterator[Found]:
    """Without labels beside values of their own, nor questions where nothing is asked."""
    labels = (ASKED, DONTCARE)
    valued = {one.slot for one in found if one.value not in labels}
    for one in found:
        alone = one.value not in labels or one.slot not in valued
        if alone and (asks or one.value != ASKED):
            yield one


def _plain(text: str, party: str) -> Iterator[DialogueAct]:
    padded = f" {text} "
    for intent, cues in PLAIN[party].items():
        if any(f" {cue} " in padded for cue in cues):
            yield DialogueAct(intent, GENERAL)
            return
    if text in ("no", "nope", "no thanks"):
        yield DialogueAct("bye" if party == USER else "reqmore", GENERAL)
