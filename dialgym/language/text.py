"""Utterances, transcripts, their bounds, and the character set that other data is brought to."""

import re
import string
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

UNKNOWN = "\N{REPLACEMENT CHARACTER}"
"""Stands in a text for whatever is not text: a special token, a character outside the charset."""

CHARSET = string.ascii_letters + string.digits + string.punctuation + " "
"""The printable characters of ASCII."""

_PLAIN = str.maketrans(
    {
        **dict.fromkeys("‘’‚‛′ʼ´", "'"),
        **dict.fromkeys("“”„‟″«»", '"'),
        **dict.fromkeys("‐‑‒–—―−", "-"),
        "…": "...",
        "。": ".",
        "、": ",",
        "×": "x",
        "£": "GBP ",
        "€": "EUR ",
        "¥": "JPY ",
        "°": " degrees",
        **dict(zip("łŁøØđĐðÐıħĦ", "lLoOdDdDihH")),
        "ß": "ss",
        "æ": "ae",
        "Æ": "AE",
        "œ": "oe",
        "Œ": "OE",
        "þ": "th",
        "Þ": "Th",
    }
)
_CONTROLS = dict.fromkeys([*range(32), 127], " ")
_BEFORE_VOWEL = re.compile(
    r"(?!(?:uni|us[abe]|ut[ei]|eu|once|one\b))[aeiou]"  # a university, a european
    r"|(?:hour|honest|heir)|[fhlmnrsx]\b"  # an hour, an s
    r"|8|(?:11|18)(?!\d)",  # an 8, an 11
    re.IGNORECASE,
)


class Utterance(NamedTuple):
    """An utterance of `speaker`. `private` ones are in their speaker's own transcript only."""

    speaker: str
    text: str
    private: bool = False


def render_transcript(utterances: Iterable[Utterance]) -> str:
    """The utterances as text, a line each: ``system: crane``."""
    return "".join([f"{speaker}: {text}\n" for speaker, text, _ in utterances])


def plain(text: str) -> str:
    """`text` in `CHARSET`, on one line: accents go, other Latin letters and typographic marks
    become those of ASCII.

    What has no such form is left out.
    """
    spaced = " ".join(text.split())  # before those that are not of ASCII go
    decomposed = unicodedata.normalize("NFKD", spaced.translate(_PLAIN))
    ascii_only = decomposed.replace("\u2044", "/").encode("ascii", "ignore").decode()
    return " ".join(ascii_only.translate(_CONTROLS).split())


def as_typed(text: str, charset: str) -> str:
    """A text as it was meant by who typed it: without the space around it, and `in_case`."""
    return in_case(text.strip(), charset)


def in_case(text: str, charset: str) -> str:
    """A text, in lower case where the `charset` knows no other."""
    return text.lower() if charset == charset.lower() else text


def article(noun: str) -> str:
    """The indefinite article of a noun phrase, by how it is said: an audi, an 8 gb drive."""
    return "an" if _BEFORE_VOWEL.match(noun) else "a"


class TextForm(Protocol):
    """Form of a language's texts in token views: tokenizer and longest lengths."""

    @property
    def tokenizer(self) -> str:
        """The tokenizer of token views."""
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
    def ordinary(self) -> Mapping[str, int]:
        """Characters of a text of each party that ordinary dialogues stay within."""
        ...

    @property
    def words(self) -> Mapping[str, Mapping[str, int]] | None:
        """Most words of a text, by hearer and speaker; None where words are not counted."""
        ...

    @property
    def vocabulary(self) -> Sequence[str]:
        """All its words, where there is an end to them."""
        ...


def words_for(values: Iterable[str], taken: Iterable[str]) -> dict[str, str]:
    """A word of its own for each value; one that is taken already gets quotes."""
    used = set(taken)
    words: dict[str, str] = {}
    for value in values:
        if value in words:
            continue
        word = joined(value)
        while not word or word in used:
            word = f"'{word}'"
        used.add(word)
        words[value] = word
    return words


def joined(value: str) -> str:
    """The words of a value as one."""
    return "_".join(value.split())
