"""A naive Bayes classifier of replies, for evaluation: a judge that pays no reward.

By another method than the classifiers that pay (`dialgym.rewards.classifier`, logistic regression
on words, characters and context), and on other replies: those of the validation split. What is
learned in order to please the one need not please the other.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np

from dialgym.optional import require
from dialgym.rewards.base import Reply, Reward
from dialgym.rewards.classifier import Example
from dialgym.rewards.degenerate import without_degenerate
from dialgym.rewards.words import ngrams, words

_START, _END = "<", ">"
_EXTRA, _PURPOSE = "rewards", "a judge of replies"


def naive_bayes(examples: Sequence[tuple[str, str]], smoothing: float = 0.1) -> Any:
    """Multinomial naive Bayes over which words and pairs of words a text has (Lewis 1998).

    A pipeline of scikit-learn, fitted: `predict` and `predict_proba` take texts.

    Args:
        examples: texts and their classes, of two classes or more.
        smoothing: is added to the count of each feature in each class (Lidstone).

    Raises:
        ValueError: there are fewer than two classes.
    """
    classes = sorted({label for _, label in examples})
    if len(classes) < 2:
        raise ValueError(
            "a naive Bayes classifier needs labelled texts of two classes or more; got "
            f"{len(examples)} texts of the classes {classes}."
        )
    text = require("sklearn.feature_extraction.text", _EXTRA, _PURPOSE)
    bayes = require("sklearn.naive_bayes", _EXTRA, _PURPOSE)
    pipeline = require("sklearn.pipeline", _EXTRA, _PURPOSE)
    counts = text.CountVectorizer(analyzer=features, binary=True)
    model = pipeline.make_pipeline(counts, bayes.MultinomialNB(alpha=smoothing))
    return model.fit(*zip(*examples, strict=True))


def features(text: str) -> list[str]:
    """Each word and pair of neighbouring words once, the pairs with the ends of the text."""
    said = words(text)
    pairs = map(" ".join, ngrams([_START, *said, _END], 2))
    return list(dict.fromkeys([*said, *pairs]))


@dataclass(frozen=True)
class Judge(Reward):
    """1 where naive Bayes takes a reply for what is wanted, else 0; 0 of what is no reply at all.

    Attributes:
        examples: labelled replies that it learns from when it first scores.
        wanted: the class that replies ought to be of; None where that is the reply's own `label`.
        label: the entry of `Reply.labels` that has the class.
        smoothing: see `naive_bayes`.
    """

    name: ClassVar[str] = "judge"
    examples: Callable[[], Sequence[Example]]
    wanted: str | None = None
    label: str = "act"
    smoothing: float = 0.1

    def score(self, replies: Sequence[Reply]) -> np.ndarray:
        """Scores (k,) 0 or 1."""
        if not replies:
            return np.zeros(0)
        labels = self._trained.predict([reply.text for reply in replies])
        hits = [label == self._wanted(reply) for label, reply in zip(labels, replies, strict=True)]
        return without_degenerate(np.array(hits, np.float64), replies, 0.0)

    def _wanted(self, reply: Reply) -> Any:
        return reply.labels.get(self.label) if self.wanted is None else self.wanted

    @cached_property
    def _trained(self) -> Any:
        examples = ((reply.text, label) for reply, label in self.examples())
        return _fitted(tuple(examples), self.smoothing)


_fitted = lru_cache(2)(naive_bayes)  # judges of one task are made anew for each row
