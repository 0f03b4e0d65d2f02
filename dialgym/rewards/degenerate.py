"""Texts that are no reply at all, though a score might like them: what policies end in that are
rewarded by judges, Gao et al. (2023), Scaling Laws for Reward Model Overoptimization.

A text is degenerate if it has no word, says the same over and over, only says again what was said
just before, or is a row of key words that no grammar holds together.
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from dialgym.rewards.base import Reply
from dialgym.rewards.words import ngrams, words

SHORTEST = 4
"""Words from which on a text can be a repetition, a copy or a row."""
REPEATED = 0.5
"""The share of distinct words, and of distinct pairs, below which a text repeats itself."""
COPIED = 0.8
"""The share of the reply's triples that make it a copy of the last utterance."""
SPARSE = 0.1
"""The share of function words below which words are a row."""
SHORTEST_ROW = 5
"""Words from which on a text without function words is a row: "Happy birthday, dear Ann" is not."""
CLASSES = {
    "articles": "a an the",
    "determiners": "this that these those my your his her its our their some any no each",
    "questions": "what who whom whose which when where why how",
    "pronouns": "i you he she it we they me him us them myself yourself one everyone anybody",
    "verbs": "is am are was were be been being do does did have has had can could will would shall "
    "should may might must isn't aren't wasn't don't doesn't didn't can't couldn't won't wouldn't "
    "i'm you're he's she's it's we're they're i've you've we've i'll you'll he'll she'll it'll "
    "we'll they'll i'd you'd that's there's what's let's ain't gonna wanna gotta",
    "prepositions": "of in to for with on at from by about into over after under off up out down "
    "through before than as around without",
    "conjunctions": "and or but if because while though",
    "adverbs": "not there here then too very just now all more only also never ever please",
}
"""Function words of English by class."""
_CLASS_OF = {word: name for name, listed in CLASSES.items() for word in listed.split()}
_ROWS = {"questions", "articles", "conjunctions"}
"""Classes of which English has no three words on end."""


def without_degenerate(scores: np.ndarray, replies: Sequence[Reply], worst: float) -> np.ndarray:
    """The scores (k,), with `worst` for texts that are no reply at all."""
    empty = np.array([is_degenerate(reply) for reply in replies], bool)
    return np.where(empty, worst, scores)


def is_degenerate(reply: Reply) -> bool:
    """Return True if a text is no reply at all."""
    said = words(reply.text)
    if not said:
        return True
    if len(said) < SHORTEST:
        return False
    return _repeats(said) or _copies(said, reply.context) or _is_row(said)


def _repeats(said: Sequence[str]) -> bool:
    pairs = ngrams(said, 2)
    longest = max(Counter(said).values()) / len(said)
    return len(set(pairs)) <= REPEATED * len(pairs) or longest > REPEATED


def _copies(said: Sequence[str], context: Sequence[str]) -> bool:
    if not context:
        return False
    before = set(ngrams(words(context[-1]), 3))
    triples = ngrams(said, 3)
    return sum(triple in before for triple in triples) >= COPIED * len(triples)


def _is_row(said: Sequence[str]) -> bool:
    classes = [_CLASS_OF.get(word, "short form" if "'" in word else None) for word in said]
    functions = sum(name is not None for name in classes)
    if len(said) >= SHORTEST_ROW and functions < SPARSE * len(said):
        return True
    return any(a == b == c and a in _ROWS for a, b, c in zip(classes, classes[1:], classes[2:]))
