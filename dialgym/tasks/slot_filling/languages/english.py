"""English by templates: acts into sentences, which `sentences.py` parses."""

import string
from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np

from dialgym.domains.domain import Domain
from dialgym.domains.ontology import DONTCARE, NAME, NONE, TYPE
from dialgym.language import AnyText
from dialgym.language.acts import Act, Hypotheses, Item
from dialgym.tasks.base import SYSTEM, USER
from dialgym.tasks.slot_filling.languages.notation import (
    MOST_VALUES,
    charset_of,
    longest_act,
    longest_user_act,
)
from dialgym.tasks.slot_filling.languages.phrases import Phrases
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
    "affirm": ("Yes, and {}.", "Yes, {} please."),
    "confirm": ("Does it have {}?", "Does that have {}?"),
    "hello": ("Hello, I want {}.", "Hi, I am looking for {}."),
    "inform": ("I want {}.", "I am looking for {}.", "I would like {}.", "{}, please."),
    "negate": ("No, {}.", "No, I want {}."),
    "reqalts": ("Is there anything else, {}?", "Are there others, {}?"),
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
    "inform": ("I have something {}.", "There is one {}."),
    "request": ("What about {}?", "Please tell me {}."),
}
NOTHING, BESIDES = "I have nothing", "besides"
SENTENCE, ITEM = 64, 4
"""Characters of a sentence beside its clauses, and between them."""


class English:
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
        self.longest = self._longest(hypotheses)

    def _longest(self, hypotheses: int) -> Mapping[str, int]:
        domain, label = self._domain, max(len(self.phrases.label(s)) for s in self.phrases.slots)
        told, said = longest_act(domain), longest_user_act(domain)
        more = SENTENCE + MOST_VALUES * (ITEM + label)
        return {SYSTEM: told + more, USER: hypotheses * (said + more)}

    @cached_property
    def _understanding(self) -> Mapping[str, SentenceParser]:
        return {party: SentenceParser(self.phrases, party) for party in (SYSTEM, USER)}

    def understand(self, text: str, party: str) -> Act | None:
        """The act that a sentence comes nearest to; None where nothing in it is known."""
        return self._understanding[party].read(text)

    def say(self, act: Act, party: str, rng: Generator) -> str:
        """A sentence for an act, one of several."""
        text = self._user(act, rng) if party == USER else self._system(act, rng)
        return text[:1].upper() + text[1:]

    def _user(self, act: Act, rng: Generator) -> str:
        kind, items = act.type, act.items
        if not items:
            return _pick(USER_FRAMES.get(kind, USER_FRAMES["null"]), rng)
        if kind == "deny":
            wrong, right = items[0], items[-1]
            return _pick(DENY, rng).format(self.phrases.clause(wrong), self.phrases.clause(right))
        if kind == "inform" and items[0] == Item("", DONTCARE):
            rest = f", {self._list(items[1:])}" if items[1:] else ""
            return _pick(("I do not care{}.", "It does not matter{}."), rng).format(rest)
        if kind == "request":
            return self._question(items)
        frames = USER_ITEM_FRAMES.get(kind, USER_ITEM_FRAMES["inform"])
        return _pick(frames, rng).format(self._list(items))

    def _question(self, items: Sequence[Item]) -> str:
        """What is asked for, and of which row, in the order of the items."""
        asked = [item for item in items if item.value is None]
        known = [item for item in items if item.value is not None]
        if not known or not asked:
            return f"What is {self._list(items)}?"
        if items[0] in known:
            return f"And for the one {self._list(known)}, what is {self._list(asked)}?"
        return f"What is {self._list(asked)} of the one {self._list(known)}?"

    def _system(self, act: Act, rng: Generator) -> str:
        kind, items = act.type, act.items
        if not items:
            return _pick(SYSTEM_FRAMES.get(kind, SYSTEM_FRAMES["null"]), rng)
        if kind == "select":
            return f"Do you want {' or '.join(self.phrases.clause(item) for item in items)}?"
        if kind == "inform" and items[0] == Item(NAME, NONE):
            return self._nothing(items[1:])
        if kind == "inform" and items[0].slot == NAME and items[1:]:
            text = f"{self.phrases.clause(items[0])}: {self._list(items[1:])}"
        else:
            text = self._list(items)
        return _pick(SYSTEM_ITEM_FRAMES.get(kind, SYSTEM_FRAMES["null"]), rng).format(text)

    def _nothing(self, items: Sequence[Item]) -> str:
        """That there is no row, or none besides those named."""
        besides = [item for item in items if item.negated]
        others = [item for item in items if not item.negated]
        text = NOTHING
        if besides:
            text += f" {BESIDES} {self._list(besides)}"
        if others:
            text += f"{',' if besides else ''} {self._list(others)}"
        return f"{text}."

    def _list(self, items: Sequence[Item]) -> str:
        ordered = sorted(items, key=lambda item: item.slot != TYPE)
        *first, last = [self.phrases.clause(item) for item in ordered]
        return f"{', '.join(first)} and {last}" if first else last

    def hear(self, text: str, hypotheses: Hypotheses, rng: Generator) -> str:
        """The text if it is sure, else a sentence for each hypothesis, with its probability."""
        said = self.understand(text, USER)
        texts = [text if act.same(said) else self.say(act, USER, rng) for act, _ in hypotheses]
        if len(texts) == 1:
            return texts[0]
        return " | ".join(f"{one} {p:.2f}" for one, (_, p) in zip(texts, hypotheses))

    def note(self, wants: Act, asks: Act) -> str:
        """What is wanted, and what is to be asked."""
        wanted = self._list(wants.items) if wants.items else f"a {self.phrases.kind()}"
        return f"I want {wanted}, and to know {self._list(asks.items)}."


def _pick(options: Sequence[str], rng: Generator) -> str:
    return options[int(rng.random() * len(options))]
