"""Spelling: words that are one slip away from words that are known."""

import re
from collections.abc import Iterable

SHORTEST = 5
"""Letters of a word that may be misspelt: shorter ones are near to too many others."""
_WORDS = re.compile(rf"[a-z]{{{SHORTEST},}}")


class SpellingMender:
    """Brings words in lower case to known ones that are a slip away.

    A slip is a letter left out, put in, put in the place of another, or changed with the next one:
    two words are near if they are the same without a letter of either.

    Args:
        known: words in lower case.
    """

    def __init__(self, known: Iterable[str]) -> None:
        self.known = frozenset(known)
        long = sorted(word for word in self.known if len(word) >= SHORTEST)
        self._near = {part: word for word in long for part in (*_without_one(word), word)}

    def mend(self, text: str) -> str:
        """A text with its misspelt words mended; words that are near to none stay."""
        return _WORDS.sub(lambda found: self._mended(found[0]), text)

    def _mended(self, word: str) -> str:
        if word in self.known:
            return word
        near = (self._near[part] for part in (word, *_without_one(word)) if part in self._near)
        return next(near, word)


def _without_one(word: str) -> list[str]:
    """A word without each of its letters."""
    return [word[:at] + word[at + 1 :] for at in range(len(word))]
