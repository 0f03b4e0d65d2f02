"""English by templates: acts into sentences, which `sentences.py` parses."""

import string
from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np

from dialgym.language import AnyText
from dialgym.language.acts import Act, Hypotheses, SlotValue
from dialgym.tasks.base import SYSTEM, USER
from dialgym.tasks.slot_filling.domain.domain import Domain
from dialgym.tasks.slot_filling.domain.ontology import DONTCARE, NAME, NONE, TYPE
from dialgym.tasks.slot_filling.languages.notation import (
    MOST_VALUES,
    charset_of,
    longest_act,
    longest_user_act,
    ordinary_texts,
    read_notation,
)
from dialgym.tasks.slot_filling.languages.phrases import PLURAL_LABELS, Phrases
from dialgym.tasks.slot_filling.languages.sentences import SentenceParser

Generator = np.random.Generator
Frames = Mapping[str, tuple[str, ...]]
USER_FRAMES: Frames = {
    "ack": ("Okay.", "All right."),
    "affirm": ("Yes.", "Yes, that is right.", "Exactly."),
    "bye": ("Goodbye.", "Bye.", "Thank you, goodbye."),
    "hello": ("Hello.", "Hi.", "Good morning."),
    "negate": ("No.", "No, that is wrong."),
    "null": ("(unclear)",),
    "repeat": ("Could you repeat that?", "Pardon?"),
    "reqalts": ("Is there anything else?", "What else is there?", "Are there others?"),
    "reqmore": ("Tell me more.",),
    "restart": ("Let us start over.",),
    "silence": ("(silence)",),
    "thankyou": ("Thank you.", "Thanks."),
}
USER_ITEM_FRAMES: Frames = {
    "affirm": ("Yes, {}.", "Yes, I want {}."),
    "confirm": ("Is it {}?", "Is that {}?"),
    "hello": ("Hello, I want {}.", "Hi, I am looking for {}."),
    "inform": ("I want {}.", "I am looking for {}.", "I would like {}.", "{}, please."),
    "negate": ("No, {}.", "No, I want {}."),
    "reqalts": ("Is there anything else {}?", "Is there another one {}?"),
}
DENY = ("I do not want {} but {}.", "Do not give me {} but {}.")
SYSTEM_FRAMES: Frames = {
    "bye": ("Goodbye.",),
    "hello": ("Hello, how may I help you?",),
    "null": ("Sorry?",),
    "repeat": ("Could you repeat that?",),
    "reqmore": ("Can I help you with anything else?",),
}
SYSTEM_ITEM_FRAMES: Frames = {
    "confirm": ("You want {}, is that right?",),
    "inform": ("I have {}.", "There is {}."),
    "request": ("What about {}?", "Which {} would you like?"),
}
NOTHING, BESIDES = "I have nothing", "besides"
SOMETHING, ONE = "something", "one"
SENTENCE, ITEM = 64, 4
"""Characters of a sentence beside its clauses, and between them."""


class SlotFillingEnglish:
    """The sentences of a domain.

    Args:
        domain: the slots and values.
        hypotheses: how many the system hears.
    """

    tokenizer = "char"
    summaries = False
    grammar = AnyText()
    words = None
    vocabulary: Sequence[str] = ()

    def __init__(self, domain: Domain, hypotheses: int) -> None:
        self.phrases = Phrases(domain)
        plain = string.ascii_letters + string.digits + string.punctuation + " "
        self.charset = "".join(sorted({*plain, *charset_of(domain)}))
        self._domain = domain
        self._plain: dict[str, bool] = {}
        self.longest = self._longest(hypotheses)
        acts = ordinary_texts(domain, hypotheses)
        self.ordinary = {party: length + SENTENCE for party, length in acts.items()}

    def _longest(self, hypotheses: int) -> Mapping[str, int]:
        domain, clauses = self._domain, [self.phrases.clause(i) for i in self.phrases.empty()]
        told, said = longest_act(domain), longest_user_act(domain)
        more = SENTENCE + MOST_VALUES * (ITEM + max(map(len, clauses)))
        return {SYSTEM: told + more, USER: hypotheses * (said + more)}

    @cached_property
    def _understanding(self) -> Mapping[str, SentenceParser]:
        return {party: SentenceParser(self.phrases, party) for party in (SYSTEM, USER)}

    def understand(self, text: str, party: str) -> Act | None:
        """The act that a sentence comes nearest to; None where nothing in it is known.

        An act in its notation is no sentence, whichever words are in it.
        """
        return None if read_notation(text) else self._understanding[party].read(text)

    def say(self, act: Act, party: str, rng: Generator) -> str:
        """A sentence for an act, one of several."""
        text = self._user(act, rng) if party == USER else self._system(act, rng)
        return text[:1].upper() + (text[1:-1] if text.endswith("..") else text[1:])

    def _user(self, act: Act, rng: Generator) -> str:
        kind, items = act.type, act.items
        if not items:
            return _pick(USER_FRAMES.get(kind, USER_FRAMES["null"]), rng)
        if kind == "deny":
            wrong, right = self._thing(items[:1], ONE), self._thing(items[-1:], ONE)
            return _pick(DENY, rng).format(wrong, right)
        if kind == "inform" and items[0] == SlotValue("", DONTCARE):
            rest = f", but I want {self._thing(items[1:])}" if items[1:] else ""
            return _pick(("I do not care{}.", "It does not matter{}."), rng).format(rest)
        if kind == "request":
            return self._question(items)
        frame = _pick(USER_ITEM_FRAMES.get(kind, USER_ITEM_FRAMES["inform"]), rng)
        return self._filled(frame, kind, items)

    def _filled(self, frame: str, kind: str, items: Sequence[SlotValue]) -> str:
        """A frame with a thing, or with what is said of one, as the frame asks for it."""
        typed = any(item.slot == TYPE for item in items)
        if kind == "reqalts":
            thing = self._thing(items).replace(self.phrases.a_row, f"another {self.phrases.kind()}")
            return f"Is there {thing}?" if typed else frame.format(self._list(items))
        if kind == "confirm":
            alone = len(items) == 1 and not self._list(items).startswith(("with ", "that "))
            single = alone and not typed
            return frame.format(self._list(items) if single else self._thing(items, ONE))
        begins_alone = not typed and frame.startswith("{}")
        if begins_alone and not self._list(items).startswith(("called ", "that ")):
            return frame.format(self._list(items))
        something = kind in ("inform", "hello") and not begins_alone
        return frame.format(self._thing(items, SOMETHING if something else ONE))

    def _question(self, items: Sequence[SlotValue]) -> str:
        """Requested slots, and of which row, in the order of the items."""
        asked = [item for item in items if item.value is None]
        known = [item for item in items if item.value is not None]
        if not known or not asked:
            return f"{self._what(items)}?"
        row = self._row(known)
        if items[0] in known or any(self.phrases.yes_no(item.slot) for item in asked):
            return f"And for {row}, w{self._what(asked)[1:]}?"
        return f"{self._what(asked)} of {row}?"

    def _what(self, asked: Sequence[SlotValue]) -> str:
        """``What is the address``."""
        if any(item.value is not None or self.phrases.yes_no(item.slot) for item in asked):
            return f"What about {self._list(asked)}"
        several = len(asked) > 1 or self.phrases.label(asked[0].slot) in PLURAL_LABELS
        return f"What {'are' if several else 'is'} {self._list(asked)}"

    def _system(self, act: Act, rng: Generator) -> str:
        kind, items = act.type, act.items
        if not items:
            return _pick(SYSTEM_FRAMES.get(kind, SYSTEM_FRAMES["null"]), rng)
        if kind == "select":
            return f"Do you want {' or '.join(self._thing([item], ONE) for item in items)}?"
        if kind == "request":
            return self._asked(items, rng)
        if kind == "confreq" and len(items) > 1:
            return self._confreq(items, rng)
        if kind == "inform" and items[0] == SlotValue(NAME, NONE):
            return self._nothing(items[1:])
        if kind == "inform" and items[0].slot == NAME and items[1:]:
            told = [self.phrases.predicate(item) for item in items[1:]]
            return f"{self._row(items[:1])} {_listed(told)}."
        frames = SYSTEM_ITEM_FRAMES.get(kind, SYSTEM_FRAMES["null"])
        return _pick(frames, rng).format(self._thing(items, ONE))

    def _confreq(self, items: Sequence[SlotValue], rng: Generator) -> str:
        """``You want something that serves thai food. What about the area?``, perhaps a count."""
        counted = items[0].slot == "count"
        found = f"There are {items[0].value}. " if counted else ""
        wanted = self._thing(items[counted:-1], SOMETHING)
        return f"{found}You want {wanted}. {self._asked(items[-1:], rng)}"

    def _asked(self, items: Sequence[SlotValue], rng: Generator) -> str:
        about, which = SYSTEM_ITEM_FRAMES["request"]
        if len(items) > 1 or self.phrases.yes_no(items[0].slot) or rng.random() < 0.5:
            return about.format(self._list(items))
        return which.format(self.phrases.label(items[0].slot))

    def _nothing(self, items: Sequence[SlotValue]) -> str:
        """That there is no row, or none besides those named."""
        besides = [self._row([item]) for item in items if item.negated]
        others = [item for item in items if not item.negated]
        text = f"{NOTHING} {BESIDES} {_listed(besides)}" if besides else NOTHING
        if others:
            text += f"{',' if besides else ''} {self._list(others)}"
        return f"{text}."

    def _thing(self, items: Sequence[SlotValue], noun: str = SOMETHING) -> str:
        """A row that is wanted: ``a restaurant in the west``, or ``something in the west``."""
        others = [self.phrases.clause(item) for item in items if item.slot != TYPE]
        head = self.phrases.a_row if len(others) < len(items) else noun
        return f"{head} {_listed(others)}" if others else head

    def _row(self, items: Sequence[SlotValue]) -> str:
        """A row that is known: by its name, if that alone is understood."""
        slot, value, _ = items[0]
        if len(items) == 1 and slot == NAME and self._unmistakable(str(value)):
            return str(value)
        return f"the one {self._list([item._replace(negated=False) for item in items])}"

    def _unmistakable(self, name: str) -> bool:
        found = self._plain.get(name)
        if found is None:
            means = (SlotValue(NAME, name),)
            heard = [self.understand(name, party) for party in (SYSTEM, USER)]
            found = all(act is not None and act.items == means for act in heard)
            self._plain[name] = found
        return found

    def _list(self, items: Sequence[SlotValue]) -> str:
        return _listed([self.phrases.clause(item) for item in items])

    def hear(self, text: str, hypotheses: Hypotheses, rng: Generator) -> str:
        """The text if it is sure, else a sentence for each hypothesis, with its probability."""
        said = self.understand(text, USER)
        texts = [text if act.same(said) else self.say(act, USER, rng) for act, _ in hypotheses]
        if len(texts) == 1:
            return texts[0]
        return " | ".join(f"{one} {p:.2f}" for one, (_, p) in zip(texts, hypotheses))

    def note(self, wants: Act, asks: Act) -> str:
        """Wishes and requests of a goal in English."""
        wanted = self._thing(wants.items or (SlotValue(TYPE, self._domain.ontology.type),))
        asked = [
            f"whether it {self.phrases.predicate(SlotValue(slot, '1'))}"
            if self.phrases.yes_no(slot)
            else self.phrases.noun(slot)
            for slot, _, _ in asks.items
        ]
        return f"I want {wanted}, and to know {_listed(asked)}."


class SlotFillingEnglishUser(SlotFillingEnglish):
    """English of the user alone: of the system's summary acts the rules make sentences."""

    summaries = True


def _pick(options: Sequence[str], rng: Generator) -> str:
    return options[int(rng.random() * len(options))]


def _listed(texts: Sequence[str]) -> str:
    """``a, b and c``."""
    *first, last = texts
    return f"{', '.join(first)} and {last}" if first else last
