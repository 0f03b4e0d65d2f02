"""The protocol of a language, how long its texts can be, and the notation of acts as a language."""

from collections.abc import Iterable, Sequence
from typing import Protocol

import numpy as np

from dialgym.language import AnyText, Constraint
from dialgym.language.acts import Act, Hypotheses, parse_act, print_act, print_hypotheses
from dialgym.language.text import TextForm
from dialgym.tasks.base import SYSTEM, USER
from dialgym.tasks.slot_filling.domain.domain import Domain
from dialgym.tasks.slot_filling.domain.ontology import DONTCARE

Generator = np.random.Generator
SYNTAX = '()=!," |.0123456789_-'
WORDS = (
    "inform request confirm select hello bye affirm negate deny reqalts reqmore repeat null "
    "thankyou ack restart silence name type none "
)
MOST_VALUES, MOST_NAMES = 12, 32
"""Items with values, and names left out, that one act may have."""
HYPOTHESES = 6
SAID = 2
"""The longest items that a hypothesis has in ordinary dialogues."""


class SlotFillingLanguage(TextForm, Protocol):
    """Puts acts into text, and text into acts."""

    @property
    def summaries(self) -> bool:
        """True if scripted systems say which summary act they choose, not what it becomes."""
        ...

    @property
    def grammar(self) -> Constraint:
        """The grammar of the user's utterances."""
        ...

    def say(self, act: Act, party: str, rng: Generator) -> str:
        """The text of an act."""
        ...

    def understand(self, text: str, party: str) -> Act | None:
        """The act of a text that `party` has said; None if it is none."""
        ...

    def hear(self, text: str, hypotheses: Hypotheses, rng: Generator) -> str:
        """Reading of a text by the system: what it may have been, and how likely."""
        ...

    def note(self, wants: Act, asks: Act) -> str:
        """The user's own note of its goal."""
        ...


class SlotFillingNotation:
    """Acts as they are written down: ``inform(food="thai") 0.83 | null() 0.17``."""

    tokenizer = "char"
    summaries = False
    grammar = AnyText()

    def __init__(self, domain: Domain, hypotheses: int) -> None:
        said = hypotheses * (longest_user_act(domain) + len(" 0.00 | "))
        self.charset = charset_of(domain)
        self.longest = {SYSTEM: longest_act(domain), USER: said}
        self.ordinary = ordinary_texts(domain, hypotheses)
        self.words = None
        self.vocabulary: Sequence[str] = ()

    def say(self, act: Act, party: str, rng: Generator) -> str:
        return print_act(act)

    def understand(self, text: str, party: str) -> Act | None:
        return read_notation(text)

    def hear(self, text: str, hypotheses: Hypotheses, rng: Generator) -> str:
        return print_hypotheses(hypotheses)

    def note(self, wants: Act, asks: Act) -> str:
        return f"{print_act(wants)} {print_act(asks)}"


def read_notation(text: str) -> Act | None:
    """The act that a text is the notation of; None if it is none."""
    try:
        return parse_act(text)
    except ValueError:
        return None


def charset_of(domain: Domain) -> str:
    """The characters of everything that is said in a domain."""
    return "".join(sorted({*SYNTAX, *WORDS, *set("".join(_texts(domain))), "\\"}))


def longest_act(domain: Domain) -> int:
    """Characters of the longest act that the system can mean to say."""
    longest = {slot: _longest(domain.database.texts(slot)) for slot in domain.database.columns}
    told = sorted([len(f'{slot}="",') + length for slot, length in longest.items()])
    name = longest["name"] + len('name!="",')
    return len("inform()") + sum(told[-MOST_VALUES:]) + MOST_NAMES * name


def longest_user_act(domain: Domain) -> int:
    """Characters of the longest act that the user can mean to say."""
    ontology = domain.ontology
    values = {**ontology.informable, "type": (ontology.type,)}
    longest = max(len(f'{slot}="",') + _longest(texts) for slot, texts in values.items())
    return len("thankyou()") + MOST_VALUES * longest + sum(len(s) + 1 for s in ontology.requestable)


def ordinary_texts(domain: Domain, hypotheses: int) -> dict[str, int]:
    """Characters of acts with a few values, by party: see `Facts.ordinary`."""
    longest = {slot: _longest(domain.database.texts(slot)) for slot in domain.database.columns}
    items = sorted([len(f'{slot}="",') + length for slot, length in longest.items()], reverse=True)
    said = len("thankyou()") + sum(items[:SAID]) + len(" 0.00 | ")
    return {SYSTEM: len("inform()") + sum(items[:MOST_VALUES]), USER: hypotheses * said}


def _longest(texts: Iterable[str]) -> int:
    """Characters of the longest text between quotes, where two marks are escaped."""
    return max(len(text) + text.count("\\") + text.count('"') for text in texts)


def _texts(domain: Domain) -> Iterable[str]:
    yield domain.ontology.type
    yield DONTCARE
    yield from domain.ontology.requestable
    for slot, values in domain.ontology.informable.items():
        yield slot
        yield from values
    for slot in domain.database.columns:
        yield from domain.database.texts(slot)
