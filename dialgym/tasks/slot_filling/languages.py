"""What the parties speak: acts in their notation, words for tokens, or English."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import numpy as np

from dialgym.language import AnyText, Constraint
from dialgym.language.acts import Act, Hypotheses, parse_act, print_act, print_hypotheses
from dialgym.tasks.base import SYSTEM, USER
from dialgym.tasks.slot_filling import extent
from dialgym.tasks.slot_filling.domains import Domain
from dialgym.tasks.slot_filling.english import English
from dialgym.tasks.slot_filling.words import Words

Generator = np.random.Generator


class Language(Protocol):
    """Puts acts into text, and text into acts."""

    @property
    def tokenizer(self) -> str:
        """What token views read it with."""
        ...

    @property
    def summaries(self) -> bool:
        """Whether scripted systems say which summary act they choose, not what it becomes."""
        ...

    @property
    def charset(self) -> str:
        """The characters of its texts."""
        ...

    @property
    def longest(self) -> Mapping[str, int]:
        """Characters of the longest meaningful text of each party."""
        ...

    @property
    def words(self) -> Mapping[str, Mapping[str, int]] | None:
        """Most words of a text, by hearer and speaker; None where words are not counted."""
        ...

    @property
    def vocabulary(self) -> Sequence[str]:
        """All its words, where there is an end to them."""
        ...

    @property
    def grammar(self) -> Constraint:
        """What the user can mean to say."""
        ...

    def say(self, act: Act, party: str, rng: Generator) -> str:
        """The text of an act."""
        ...

    def understand(self, text: str, party: str) -> Act | None:
        """The act of a text that `party` has said; None if it is none."""
        ...

    def hear(self, text: str, hypotheses: Hypotheses, rng: Generator) -> str:
        """What the system hears of a text: what it may have been, and how likely."""
        ...

    def note(self, wants: Act, asks: Act) -> str:
        """The user's own note of its goal."""
        ...


class Notation:
    """Acts as they are written down: ``inform(food="thai") 0.83 | null() 0.17``."""

    tokenizer = "char"
    summaries = False
    grammar = AnyText()

    def __init__(self, domain: Domain, hypotheses: int) -> None:
        said = hypotheses * (extent.longest_user_act(domain) + len(" 0.00 | "))
        self.charset = extent.charset(domain)
        self.longest = {SYSTEM: extent.longest_act(domain), USER: said}
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


LANGUAGES: Mapping[str, Callable[[Domain, int], Language]] = {
    "acts": Notation,
    "words": Words,
    "english": English,
}
"""By name; each is made of a domain, and of the number of hypotheses that the system hears."""
