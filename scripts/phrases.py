"""Phrases with alternatives and facts, from which the built-in corpora are written.

A phrase is text in which

- ``[a|b|]`` is one of its alternatives, drawn each time; alternatives nest, and may be empty;
- ``{dish}`` is a fact: one entry of the list ``dish``, drawn once and kept; ``{dish2}`` is another
  entry of the same list, and ``{dish.price}`` is a field of it;
- ``<thanks>`` is a phrase of that name, drawn each time.

A bar outside of brackets separates alternatives too. After all is drawn, sentences get their
capitals, questions that begin with a verb their mark, and "a" becomes "an" where it must.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from domain_texts import Draw

SLOT = re.compile(r"([a-z_]+?)(\d?)(?:\.([a-z_]+))?")
SPECIAL = re.compile(r"[\[\]|]|\{[^{}]*\}|<[a-z_]+>")
CLOSING = {"[": 1, "]": -1}

# "a" before a vowel that sounds like a consonant, "an" before a silent h, and before 8, 11, 18
VOWEL = re.compile(
    r"(?!uni(?!n)|us[eu]|eu|one\b|once)[aeiou]|hour|honest|honor|heir|8|1[18]\b", re.I
)
VOWEL_LETTER = re.compile(r"[AEFHILMNORSX](?:[A-Z]+)?\b")
CAPITALS = re.compile(r"(?:[A-Z]|[A-Z]{2,})\b")
ARTICLE = re.compile(r"((?<![a-z] )\bA|\ba)n? (?=(\S+))")
AUXILIARY = (
    "could|can|would|will|shall|may|is|are|does|did|has|was|were|am|isn't|aren't|can't|don't|won't"
)
SUBJECT = "I|you|we|he|she|it|they|this|that|there|somebody|someone|anyone|your"
QUESTION = re.compile(
    rf"(?:^|(?<=[.!?] ))(?:(?:how|what|where|when|why|which|who)\b[^.!?]*? )??"
    rf"(?:{AUXILIARY}|do(?! it| that| this)) (?:{SUBJECT})\b"
    r"(?:[^.!?]|(?:Mrs?|Ms|Dr)\.)*(?<!Mr)(?<!Ms)(?<!Dr)(?<!Mrs)\.",
    re.I,
)
START = re.compile(r"(^|[.!?] )([a-z])")


class Fact(NamedTuple):
    """Entry of a list of facts: its fields by name, or one text under ``""``."""

    fields: Mapping[str, str]


class Lexicon(NamedTuple):
    """The lists of facts and the named phrases that a text may use."""

    facts: Mapping[str, Sequence[Fact]]
    phrases: Mapping[str, str]

    def joined(self, other: "Lexicon") -> "Lexicon":
        """Both; names of `other` come first."""
        return Lexicon({**self.facts, **other.facts}, {**self.phrases, **other.phrases})


class Speech:
    """Writes phrases with facts that stay the same from one phrase to the next."""

    def __init__(self, lexicon: Lexicon, draw: Draw) -> None:
        self.lexicon, self.draw = lexicon, draw
        self._drawn: dict[str, tuple[int, dict[str, str]]] = {}

    def write(self, phrase: str) -> str:
        """One wording of a phrase.

        Raises:
            ValueError: it names no list, field or phrase, or its brackets do not match.
        """
        return finished(self._expand(phrase))

    def _expand(self, phrase: str) -> str:
        parts = split(phrase, "|")
        text = self.draw.one(parts)
        out, depth, begin = [], 0, 0
        for match in SPECIAL.finditer(text):
            mark = match[0]
            if depth == 0 and mark not in "]|":
                out.append(text[begin : match.start()])
                begin = match.end()
                if mark != "[":
                    out.append(self._fact(mark) if mark[0] == "{" else self._phrase(mark))
            depth += CLOSING.get(mark, 0)
            if depth == 0 and mark == "]":
                out.append(self._expand(text[begin : match.start()]))
                begin = match.end()
        return "".join([*out, text[begin:]])

    def _phrase(self, mark: str) -> str:
        if mark[1:-1] not in self.lexicon.phrases:
            raise ValueError(f"no phrase is called {mark}; there are {list(self.lexicon.phrases)}.")
        return self._expand(self.lexicon.phrases[mark[1:-1]])

    def _fact(self, mark: str) -> str:
        match = SLOT.fullmatch(mark[1:-1])
        if match is None or match[1] not in self.lexicon.facts:
            raise ValueError(f"no list is called {mark}; there are {list(self.lexicon.facts)}.")
        fields = self._fields(match[1], match[2])
        if (match[3] or "") not in fields:
            raise ValueError(f"{mark}: no such field; there are {list(fields)}.")
        return fields[match[3] or ""]

    def _fields(self, name: str, number: str) -> dict[str, str]:
        key = name + number
        if key not in self._drawn:
            facts = self.lexicon.facts[name]
            drawn = self._drawn.items()
            taken = {place for other, (place, _) in drawn if other.rstrip("0123456789") == name}
            place = self.draw.one([i for i in range(len(facts)) if i not in taken])
            fields = {field: self._expand(text) for field, text in facts[place].fields.items()}
            self._drawn[key] = place, fields
        return self._drawn[key][1]


def split(text: str, mark: str) -> list[str]:
    """The parts of a phrase between marks that lie outside of brackets."""
    parts, depth, begin = [], 0, 0
    for place, char in enumerate(text):
        depth += CLOSING.get(char, 0)
        if depth < 0:
            break
        if depth == 0 and char == mark:
            parts.append(text[begin:place])
            begin = place + 1
    if depth:
        raise ValueError(f"brackets do not match in {text!r}.")
    return [*parts, text[begin:]]


def finished(text: str) -> str:
    """`text` with its articles, capitals, question marks and spaces mended."""
    text = " ".join(text.split())
    text = re.sub(r" (?=[,.!?])", "", text)
    text = QUESTION.sub(lambda m: m[0][:-1] + "?", text)
    text = ARTICLE.sub(lambda m: m[1] + ("n " if starts_with_vowel(m[2]) else " "), text)
    return START.sub(lambda m: m[1] + m[2].upper(), text)


def starts_with_vowel(word: str) -> bool:
    """Return True if a word sounds as if it began with a vowel."""
    word = word.lstrip("\"'(")
    if CAPITALS.match(word):
        return VOWEL_LETTER.match(word) is not None
    return VOWEL.match(word) is not None


def read_blocks(lines: Iterable[str]) -> list[tuple[str, str]]:
    """(key, text) of lines ``key: text``; indented lines go on with the line before.

    A line without a colon is a key alone. Lines that begin with ``#`` are comments.
    """
    blocks: list[list[str]] = []
    for line in lines:
        if not line.strip() or line.startswith("#"):
            continue
        if line.startswith("  "):
            blocks[-1][1] += " " + line.strip()
        else:
            key, _, text = line.partition(":")
            blocks.append([key.strip(), text.strip()])
    return [(key, text) for key, text in blocks]


def read_facts(key: str, text: str) -> tuple[str, list[Fact]]:
    """The name and the facts of ``@dish: soup | pie`` or ``@bill(sum, paid): 8; 10 | 9; 20``."""
    name, _, fields = key.lstrip("@").rstrip(")").partition("(")
    names = [field.strip() for field in fields.split(",")] if fields else [""]
    facts = []
    for entry in split(text, "|"):
        values = [value.strip() for value in split(entry, ";")] if fields else [entry.strip()]
        if len(values) != len(names):
            raise ValueError(f"{key}: expected {len(names)} fields; got {entry!r}.")
        facts.append(Fact(dict(zip(names, values))))
    return name.strip(), facts


def read_lexicon(blocks: Iterable[tuple[str, str]]) -> Lexicon:
    """The lists (``@name: ...``) and phrases (``$name: ...``) among blocks."""
    blocks = list(blocks)
    facts = dict(read_facts(key, text) for key, text in blocks if key.startswith("@"))
    phrases = {key[1:]: text for key, text in blocks if key.startswith("$")}
    return Lexicon(facts, phrases)
