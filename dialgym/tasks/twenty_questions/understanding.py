"""Parsing of questions and guesses."""

import re
from collections.abc import Mapping

from dialgym.language.text import plain
from dialgym.tasks.twenty_questions.table import AnswerTable, normal
from dialgym.tasks.twenty_questions.types import NO, NOTHING, UNCLEAR, YES

STOP = frozenset((
    "a", "an", "the", "some", "it", "its", "is", "isn't", "it's", "are", "aren't", "was",
    "were", "does", "doesn't", "do", "don't", "did", "can", "can't", "could", "would", "will",
    "be", "has", "have", "had", "this", "that", "they", "them", "thing", "things",
    "something", "object", "item", "one", "kind", "type", "sort", "of", "by", "you", "we",
    "people", "i", "i'm", "i'd", "my", "guess", "think", "say", "final", "answer", "in", "on",
    "at", "to", "for", "with", "from", "there", "their", "any", "or", "and", "ever", "usually",
    "often", "normally", "typically", "mostly", "found",
))  # fmt: skip
"""Words that do not tell one question from another."""
NEGATIONS = frozenset(("not", "without", "never"))
OPEN = frozenset(("what", "what's", "which", "who", "where", "when", "why", "how"))
"""First words of questions that yes or no does not answer."""
LEAST_SHARED = 0.5
REMEMBERED = 50_000

Asked = tuple[int, bool]
"""Code of a question or a guess, or NOTHING; and whether it is negated."""


class Understanding:
    """Reads utterances as the questions and guesses of a table.

    In order of preference an utterance is a wording of a question; the name of a thing, beside
    words that tell nothing (``I think it's the cat``); or the question with which it shares most
    words, if those are at least half of the words of both, and no other question has as many.
    ``not``, ``without`` and ``never`` turn a question round, in its wording too. What begins with
    ``what``, ``how`` and the like is not understood, nor is a negated guess.

    Args:
        table: things and questions; guesses have the codes that follow those of the questions.
    """

    def __init__(self, table: AnswerTable) -> None:
        count = len(table.questions)
        self._exact: dict[str, int] = {}
        self._named: dict[tuple[str, ...], int] = {}
        for code, wordings in enumerate(table.questions):
            self._exact |= {normal(wording): code for wording in wordings}
        for code, names in enumerate(table.names, count):
            self._exact |= {normal(f"is it {name}"): code for name in names}
            for words in {tuple(content(name)) for name in names}:
                ambiguous = words in self._named or not words
                self._named[words] = NOTHING if ambiguous else code
        self._words = [
            (code, frozenset(content(wording)) - NEGATIONS, is_negated(wording))
            for code, wordings in enumerate(table.questions)
            for wording in wordings
        ]
        self._known: dict[str, Asked] = {}

    def read(self, text: str) -> Asked:
        """The question or guess of a text."""
        found = self._known.get(text)
        if found is None:
            if len(self._known) >= REMEMBERED:
                self._known.clear()
            found = self._known[text] = self._read(normal(plain(text)))
        return found

    def _read(self, text: str) -> Asked:
        if text in self._exact:
            return self._exact[text], False
        words = text.split()
        if not words or words[0] in OPEN:
            return NOTHING, False
        negated = is_negated(text)
        positive = [word for word in words if word not in NEGATIONS]
        code = self._exact.get(" ".join(positive), NOTHING)
        if code == NOTHING:
            code = self._named.get(tuple(content(text)), NOTHING)
        if code == NOTHING:
            code, negated = self._nearest(frozenset(content(" ".join(positive))), negated)
        guess = code >= self._words[-1][0] + 1
        return (NOTHING, False) if guess and negated else (code, negated and code != NOTHING)

    def _nearest(self, words: frozenset[str], negated: bool) -> Asked:
        """The question that shares most of the words, if just one does; whether it is turned round.

        It is where one of text and wording is negated. Of wordings that share as many words the
        one is meant that is not turned round.
        """
        shared: dict[int, tuple[float, bool]] = {}
        for code, known, turned in self._words:
            if known and words:
                share = len(words & known) / len(words | known), turned == negated
                shared[code] = max(share, shared.get(code, (0.0, False)))
        most = max(shared.values(), default=(0.0, False))
        best = [code for code, share in shared.items() if share == most]
        if most[0] < LEAST_SHARED or len(best) > 1:
            return NOTHING, False
        return best[0], not most[1]

    def __getstate__(self) -> Mapping[str, object]:
        """Without what was read before."""
        return {**self.__dict__, "_known": {}}


def is_negated(text: str) -> bool:
    """Tell if a word of a text is one of `NEGATIONS`."""
    return not NEGATIONS.isdisjoint(normal(text).split())


def content(text: str) -> list[str]:
    """The stems of the words that tell something."""
    return [_stem(word) for word in normal(text).split() if word not in STOP]


def _stem(word: str) -> str:
    """A word without a plural's or a verb's ending; enough to match a wording with another."""
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    return re.sub(r"(?<=[a-z]{2}[^su])s$", "", word)


def read_answer(text: str) -> int:
    """YES or NO by the first word, else UNCLEAR."""
    words = normal(text).split()
    return {"yes": YES, "no": NO}.get(words[0], UNCLEAR) if words else UNCLEAR
