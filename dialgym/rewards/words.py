"""Words, sentences, n-grams and Treebank tokens of a text; lexicons, and how they are looked up."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

from dialgym.optional import require

_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
KEPT = 2**15  # words and texts remembered
_PLAIN = re.compile(r"(?!.*'')[A-Za-z0-9 ,.?!'-]*[A-Za-z0-9][,.?!'-]*")
"""Sentences in which nltk's rules look at a word and its marks alone, and the end of the sentence
is the end of a word."""
TOKEN = re.compile(r"\w+(?:['’-]\w+)*|[^\w\s]")
LONGEST = 5  # words of a phrase
_ENDINGS = ("s", "es", "d", "ed", "r", "er", "est", "ing", "ly", "'s")


def words(text: str) -> list[str]:
    """The words in lower case: letters and digits, straight apostrophes inside, no punctuation."""
    return _WORD.findall(text.lower().replace("’", "'"))


def sentences(text: str) -> list[str]:
    """The text cut after each `.`, `!` or `?` that a space follows; nothing for an empty one."""
    return [part for part in _SENTENCE_END.split(text) if part]


def ngrams(tokens: Sequence[str], n: int) -> list[tuple[str, ...]]:
    """The n-grams in order, `len(tokens) - n + 1` of them or none."""
    return list(zip(*(tokens[start:] for start in range(n))))


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
            cut: list[str] = self._cut(sentence)
            return cut
        *words, last = sentence.split()
        tokens = [token for word in words for token in self._word(word, False)]
        return tokens + self._word(last, True)

    def _cut_word(self, word: str, last: bool) -> list[str]:
        """The tokens of a word between others, or of the last."""
        cut: list[str] = self._cut(f"x {word}" if last else f"x {word} x")
        return cut[1:] if last else cut[1:-1]


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
class WeightedLexicon:
    """Values of words and phrases; a phrase is written with `_` between its words."""

    values: Mapping[str, float]

    def find(self, tokens: Sequence[str]) -> Iterator[Hit]:
        """The entries in the text from left to right, longest first, none within another."""
        start = 0
        while start < len(tokens):
            hit = self._at(tokens, start)
            if hit:
                yield hit
            start = hit.end if hit else start + 1

    def _at(self, tokens: Sequence[str], start: int) -> Hit | None:
        for length in range(min(LONGEST, len(tokens) - start), 1, -1):
            phrase = "_".join(tokens[start : start + length])
            if phrase in self.values:
                return Hit(self.values[phrase], start, start + length)
        for form in base_forms(tokens[start]):
            if form in self.values:
                return Hit(self.values[form], start, start + 1)
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


def read_lexicon(name: str) -> WeightedLexicon:
    """The built-in lexicon of that name."""
    text = (files("dialgym.rewards") / "lexicons" / f"{name}.txt").read_text("utf-8")
    lines = (line.split() for line in text.splitlines() if not line.startswith("#"))
    return WeightedLexicon({entry: float(value) for value, *entries in lines for entry in entries})
