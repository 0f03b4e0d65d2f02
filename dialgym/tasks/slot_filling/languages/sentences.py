"""A rule-based parser of English sentences into acts.

Phrases are looked for from left to right, the longest first; words that are none are passed over.
What phrases a sentence has, and in which order, decides on the act.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from dialgym.language.acts import Act, SlotValue
from dialgym.tasks.base import USER
from dialgym.tasks.slot_filling.domain.ontology import DONTCARE, NAME, NONE, TYPE
from dialgym.tasks.slot_filling.languages.phrases import Phrases

ANY, LABEL, VALUE, ITEM = "any", "label", "value", "item"
"""Kinds of phrases beside the cues: of indifference, slots, values without a slot, and both."""
USER_CUES: Mapping[str, tuple[str, ...]] = {
    "ack": ("okay", "ok", "all right", "alright", "fine", "great", "good"),
    "affirm": ("yes", "yeah", "yep", "exactly", "correct", "that is right", "right", "sure"),
    "bye": ("goodbye", "good bye", "bye", "see you", "that is all", "that's all"),
    "confirm": ("is it", "is that", "is that one", "does it have", "does that have", "does it",
                "is this", "isn't it", "aren't they"),
    "deny": ("do not want", "don't want", "do not give me", "not", "do not like", "don't like",
             "isn't", "aren't", "anything but", "anything except", "anything other than"),
    "hello": ("hello", "hi", "hey", "good morning", "good evening", "good afternoon"),
    "negate": ("no", "nope", "that is wrong", "wrong"),
    "repeat": ("repeat", "repeat that", "say that again", "pardon", "come again"),
    "reqalts": ("anything else", "something else", "what else", "others", "another",
                "another one", "alternatives", "other options", "different one"),
    "reqmore": ("tell me more",),
    "restart": ("start over", "start again", "restart"),
    "silence": ("silence",),
    "thankyou": ("thank you", "thanks", "thank you very much", "cheers"),
    ANY: ("do not care", "don't care", "doesn't matter", "does not matter", "don't mind",
          "do not mind", "anything", "whatever", "any", "no preference", "either"),
}  # fmt: skip
SYSTEM_CUES: Mapping[str, tuple[str, ...]] = {
    "bye": USER_CUES["bye"],
    "confirm": ("is that right", "right", "correct", "did you say", "is it"),
    "hello": (*USER_CUES["hello"], "welcome", "how may i help you", "how can i help you"),
    "question": ("?",),
    "nothing": ("i have nothing", "there is nothing", "there is no", "there are no", "nothing"),
    "besides": ("besides", "other than", "except", "but"),
    "repeat": USER_CUES["repeat"],
    "reqmore": ("anything else", "something else", "more"),
    "select": ("do you want", "would you like", "do you prefer", "or"),
    ANY: ("any",),
}
PASSED = ("i", "a", "an", "the", "and", "or", "is", "it", "in", "of", "to", "for", "me", "you",
          "want", "have", "like", "please", "what", "there", "one", "on", "at", "with", "about",
          "ask", "that")  # fmt: skip
"""Words that are too common to stand for a value by themselves."""
_TOKEN = re.compile(r"[^\s,:;?!()\"]+|[,:;?!()\"]")


class Phrase(NamedTuple):
    """A phrase that was found: its kind, and the items that it may mean."""

    kind: str
    items: tuple[SlotValue, ...] = ()


class SentenceParser:
    """Reads what a party says.

    Args:
        phrases: those of the domain.
        party: who speaks.
    """

    def __init__(self, phrases: Phrases, party: str) -> None:
        self._user = party == USER
        self._known: dict[tuple[str, ...], Phrase] = {}
        self._add_domain(phrases)
        for kind, cues in (USER_CUES if self._user else SYSTEM_CUES).items():
            for cue in cues:
                self._known.setdefault(_tokens(cue), Phrase(kind))
        self._lengths: dict[str, list[int]] = {}
        for key in sorted(self._known, key=len, reverse=True):
            lengths = self._lengths.setdefault(key[0], [])
            if len(key) not in lengths:
                lengths.append(len(key))

    def _add_domain(self, phrases: Phrases) -> None:
        for clause, item in phrases.items(told=not self._user):
            self._add(clause, Phrase(ITEM, (item,)))
        if self._user:
            self._add(phrases.kind(), Phrase(ITEM, (SlotValue(TYPE, phrases.ontology.type),)))
        common = {(word,) for word in PASSED} | {_tokens(cue) for cue in _all_cues()}
        for words, slot, value in phrases.bare():
            key = _tokens(words)
            if key in common:
                continue
            known = self._known.get(key, Phrase(VALUE))
            if known.kind == VALUE:
                self._known[key] = Phrase(VALUE, (*known.items, SlotValue(slot, value)))
        for words, slot in phrases.labels():
            self._add(words, Phrase(LABEL, (SlotValue(slot),)))

    def _add(self, text: str, phrase: Phrase) -> None:
        self._known.setdefault(_tokens(text), phrase)

    def read(self, text: str) -> Act | None:
        """The act of a text; None where no phrase of it is known."""
        found = list(self._phrases(_tokens(text)))
        if not found:
            return None
        cues = [phrase.kind for phrase in found]
        items = list(_items(found))
        return _user_act(cues, items) if self._user else _system_act(cues, found, items)

    def _phrases(self, tokens: tuple[str, ...]) -> Iterator[Phrase]:
        place = 0
        while place < len(tokens):
            for length in self._lengths.get(tokens[place], ()):
                phrase = self._known.get(tokens[place : place + length])
                if phrase is not None and place + length <= len(tokens):
                    yield phrase
                    place += length
                    break
            else:
                place += 1


def _all_cues() -> Iterator[str]:
    for cues in (*USER_CUES.values(), *SYSTEM_CUES.values()):
        yield from cues


def _tokens(text: str) -> tuple[str, ...]:
    """Words in lower case, without the full stops behind them, and other marks."""
    words = (token.lower() for token in _TOKEN.findall(text))
    return tuple([word.rstrip(".") or word for word in words])


def _items(found: list[Phrase]) -> Iterator[SlotValue]:
    """Meaning of the phrases: a value goes with the slot beside it, if it is one of its values."""
    last = len(found) - 1
    taken = -1
    for place, (kind, items) in enumerate(found):
        if place <= taken or kind not in (ITEM, VALUE, LABEL, ANY):
            continue
        following = found[place + 1] if place < last else Phrase("")
        both = _together(found[place], following)
        if both is not None:
            yield both
            taken = place + 1
        elif kind == ANY:
            about = following.kind == LABEL
            yield SlotValue(following.items[0].slot if about else "", DONTCARE)
            taken = place + about
        else:
            yield items[0]


def _together(first: Phrase, second: Phrase) -> SlotValue | None:
    """The item of a slot and one of its values, in either order."""
    if {first.kind, second.kind} != {LABEL, VALUE}:
        return None
    label, value = (first, second) if first.kind == LABEL else (second, first)
    slot = label.items[0].slot
    return next((item for item in value.items if item.slot == slot), None)


def _user_act(cues: Iterable[str], items: list[SlotValue]) -> Act:
    """The act of a user's sentence: the first of these rules that fits."""
    said = dict.fromkeys(cues)
    for kind in ("bye", "restart", "repeat"):
        if kind in said:
            return Act(kind)
    if "reqalts" in said:
        return Act("reqalts", tuple(items))
    if "deny" in said and items:
        return Act("deny", tuple(items[:2]))
    valued = any(item.value is not None for item in items)
    if "confirm" in said and valued and "affirm" not in said:
        return Act("confirm", tuple(items))
    for kind in ("hello", "negate", "affirm"):
        if kind in said and (kind != "hello" or items):
            return Act(kind, tuple(items))
    if items:
        asked = any(item.value is None for item in items)
        return Act("request" if asked else "inform", tuple(items))
    kinds = ("thankyou", "hello", "reqmore", "ack", "silence")
    return Act(next((kind for kind in kinds if kind in said), "null"))


def _system_act(cues: Iterable[str], found: list[Phrase], items: list[SlotValue]) -> Act:
    """The act of a system's sentence: the first of these rules that fits."""
    said = dict.fromkeys(cues)
    if "nothing" in said:
        if "besides" in said:
            items = [item._replace(negated=item.slot == NAME) for item in items]
        return Act("inform", (SlotValue(NAME, NONE), *items))
    if "confirm" in said and items:
        return Act("confirm", tuple(items))
    if "select" in said and len(items) > 1 and items[0].slot == items[1].slot:
        return Act("select", tuple(items[:2]))
    if items and all(item.value is None for item in items):
        return Act("request", tuple(items[:1]))
    if items:
        told = any(item.slot == NAME for item in items) or "question" not in said
        return Act("inform" if told else "confirm", tuple(items))
    kinds = ("bye", "repeat", "hello", "reqmore")
    return Act(next((kind for kind in kinds if kind in said), "null"))
