"""Scripted speaker of everyday dialogues by retrieval."""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from dialgym.optional import require
from dialgym.simulators import EachReplies
from dialgym.tasks.daily_dialog.corpus import DailyDialogCorpus
from dialgym.tasks.daily_dialog.task import DailyDialog
from dialgym.tasks.daily_dialog.types import DailyDialogState
from dialgym.tasks.hidden import reveal

Generator = np.random.Generator
REMEMBERED = 2
"""Utterances by which contexts are compared."""


class Retrieval(EachReplies):
    """Says what was said in the training split where the context was most like this one.

    Contexts are compared by the cosine of the TF-IDF vectors of their last two utterances. The
    dialogue itself is left out where it is of the training split.

    Args:
        nearest: one of so many of the most similar contexts is chosen, at random.
    """

    def __init__(self, nearest: int = 1) -> None:
        if not isinstance(nearest, int) or nearest < 1:
            raise ValueError(f"Retrieval: nearest must be a whole number from 1; got {nearest!r}.")
        self.nearest = nearest

    def reply(self, task: DailyDialog, state: DailyDialogState, rng: Generator) -> str:
        corpus = task.training
        index = _index_of(corpus)
        heard = " ".join([line.text for line in state.lines[-REMEMBERED:]])
        alike = (index.vectors @ index.vectorizer.transform([heard]).T).toarray()[:, 0]
        if corpus is task.corpus:
            own = reveal(state.dialogue)  # only to be left out
            begin, end = np.searchsorted(index.places[:, 0], [own, own + 1])
            alike[begin:end] = -1.0
        best = np.argsort(-alike, kind="stable")[: self.nearest]
        dialogue, turn = index.places[best[rng.integers(len(best))]].tolist()
        return corpus.text(dialogue, turn)[: task.longest]


class _Index(NamedTuple):
    """The contexts of a corpus as vectors."""

    vectorizer: Any
    vectors: Any  # (P, features) sparse, rows of length 1
    places: np.ndarray  # (P, 2) int64


@lru_cache(maxsize=2)
def _index_of(corpus: DailyDialogCorpus) -> _Index:
    text = require("sklearn.feature_extraction.text", "rewards", "a speaker that retrieves")
    places = corpus.places(1)
    contexts = [" ".join(corpus.context(d, t, REMEMBERED)) for d, t in places.tolist()]
    vectorizer = text.TfidfVectorizer(sublinear_tf=True, dtype=np.float32)
    return _Index(vectorizer, vectorizer.fit_transform(contexts), places)
