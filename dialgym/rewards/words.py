"""Words, sentences and n-grams of a text, as the rewards count them."""

import re
from collections.abc import Sequence

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")


def words(text: str) -> list[str]:
    """The words in lower case: letters and digits, with apostrophes inside, no punctuation."""
    return _WORD.findall(text.lower())


def sentences(text: str) -> list[str]:
    """The text cut after each `.`, `!` or `?` that a space follows; nothing for an empty one."""
    return [part for part in _SENTENCE_END.split(text) if part]


def ngrams(tokens: Sequence[str], n: int) -> list[tuple[str, ...]]:
    """The n-grams in order, `len(tokens) - n + 1` of them or none."""
    return list(zip(*(tokens[start:] for start in range(n))))
