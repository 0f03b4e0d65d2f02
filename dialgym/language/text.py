"""Utterances, transcripts, and the character set that data from elsewhere is brought to."""

import re
import string
import unicodedata
from collections.abc import Iterable
from typing import NamedTuple

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
    }
)
_SPACES = re.compile(r"\s+")


class Utterance(NamedTuple):
    """What `speaker` said. `private` ones are in their speaker's own transcript only."""

    speaker: str
    text: str
    private: bool = False


def render_transcript(utterances: Iterable[Utterance]) -> str:
    """The utterances as text, a line each: ``system: crane``."""
    return "".join([f"{speaker}: {text}\n" for speaker, text, _ in utterances])


def plain(text: str) -> str:
    """`text` in `CHARSET`, on one line: accents go, typographic marks become those of ASCII.

    What has no such form is left out.
    """
    spaced = _SPACES.sub(" ", text)  # before those that are not of ASCII go
    decomposed = unicodedata.normalize("NFKD", spaced.translate(_PLAIN))
    ascii_only = decomposed.replace("\u2044", "/").encode("ascii", "ignore").decode()
    return _SPACES.sub(" ", "".join(c if c.isprintable() else " " for c in ascii_only)).strip()
