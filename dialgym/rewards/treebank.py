"""nltk's words and marks, found quickly."""

import re
from functools import lru_cache

from dialgym.optional import require
from dialgym.rewards.words import sentences

KEPT = 2**15  # words and texts remembered
_PLAIN = re.compile(r"(?!.*'')[A-Za-z0-9 ,.?!'-]*[A-Za-z0-9][,.?!'-]*")
"""Sentences in which nltk's rules look at a word and its marks alone, and the end of the sentence
is the end of a word."""


class Treebank:
    """nltk's `word_tokenize`, sentence by sentence.

    A sentence ends at `.`, `!` or `?` before a space; the model of sentences that nltk would use
    needs a download. Words of plain sentences are cut one by one and remembered, which gives the
    same tokens.
    """

    def __init__(self) -> None:
        nltk = require("nltk.tokenize", "rewards", "reward 'meteor'")
        self._cut = nltk.NLTKWordTokenizer().tokenize
        self._word = lru_cache(KEPT)(self._cut_word)

    def __call__(self, text: str) -> list[str]:
        """The tokens of a text."""
        return [token for sentence in sentences(text) for token in self._sentence(sentence)]

    def _sentence(self, sentence: str) -> list[str]:
        if not _PLAIN.fullmatch(sentence):
            found: list[str] = self._cut(sentence)
            return found
        *words, last = sentence.split()
        tokens = [token for word in words for token in self._word(word, False)]
        return tokens + self._word(last, True)

    def _cut_word(self, word: str, last: bool) -> list[str]:
        """The tokens of a word between others, or of the last."""
        found: list[str] = self._cut(f"x {word}" if last else f"x {word} x")
        return found[1:] if last else found[1:-1]
