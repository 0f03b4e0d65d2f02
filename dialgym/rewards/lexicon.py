"""Word lists with values, and how they are looked up: phrases first, then inflections."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files

TOKEN = re.compile(r"\w+(?:['’-]\w+)*|[^\w\s]")
LONGEST = 5  # words of a phrase
_ENDINGS = ("s", "es", "d", "ed", "r", "er", "est", "ing", "ly", "'s")


@dataclass(frozen=True)
class Hit:
    """An entry found in a text.

    Attributes:
        value: of the entry.
        start: the place of its first token.
        end: the place behind its last.
    """

    value: float
    start: int
    end: int


@dataclass(frozen=True)
class Lexicon:
    """Values of words and phrases; a phrase is written with `_` between its words."""

    values: Mapping[str, float]

    def find(self, tokens: Sequence[str]) -> Iterator[Hit]:
        """The entries in the text from left to right, longest first, none within another."""
        place = 0
        while place < len(tokens):
            hit = self._at(tokens, place)
            if hit:
                yield hit
            place = hit.end if hit else place + 1

    def _at(self, tokens: Sequence[str], place: int) -> Hit | None:
        for length in range(min(LONGEST, len(tokens) - place), 1, -1):
            phrase = "_".join(tokens[place : place + length])
            if phrase in self.values:
                return Hit(self.values[phrase], place, place + length)
        for form in base_forms(tokens[place]):
            if form in self.values:
                return Hit(self.values[form], place, place + 1)
        return None


def tokens_of(text: str) -> list[str]:
    """Words and marks in lower case, with a straight apostrophe."""
    return TOKEN.findall(text.lower().replace("’", "'"))


def base_forms(word: str) -> Iterator[str]:
    """The word, and what it may be an inflection of: stopped -> stop, happily -> happy."""
    yield word
    for ending in _ENDINGS:
        stem = word.removesuffix(ending)
        if stem == word or len(stem) < 3:
            continue
        yield stem
        if ending in ("ing", "er", "est", "ed"):
            yield stem + "e"
            if stem[-1] == stem[-2]:
                yield stem[:-1]
        if stem[-1] == "i":
            yield stem[:-1] + "y"


def read_lexicon(name: str) -> Lexicon:
    """The built-in lexicon of that name."""
    text = (files("dialgym.rewards") / "lexicons" / f"{name}.txt").read_text("utf-8")
    lines = (line.split() for line in text.splitlines() if not line.startswith("#"))
    return Lexicon({entry: float(value) for value, *entries in lines for entry in entries})
