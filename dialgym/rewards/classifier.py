"""A linear classifier of replies, small enough to be trained on first use.

Multinomial logistic regression over hashed n-grams: of the words of the reply, of its characters,
and of the words of the last utterance before it. Each block is of length 1, then scaled.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dialgym.optional import require
from dialgym.rewards.base import Reply
from dialgym.rewards.words import ngrams

COLUMNS = 2**17
"""Columns that the n-grams of a block are hashed to."""
_TOKEN = re.compile(r"\w+(?:['’]\w+)*|[^\w\s]")
_EXTRA, _PURPOSE = "rewards", "a classifier trained on labelled replies"


def reply_words(reply: Reply) -> list[str]:
    """Words and marks of the reply, one to three of them, beginning and end marked."""
    return _joined(reply.text, 3)


def reply_characters(reply: Reply) -> list[str]:
    """Three to five characters of the reply, spaces between words and marks."""
    text = f" {' '.join(_TOKEN.findall(reply.text.lower()))} "
    return [text[start : start + n] for n in (3, 4, 5) for start in range(len(text) - n + 1)]


def context_words(reply: Reply) -> list[str]:
    """Words and marks of the last utterance before the reply, one or two of them."""
    return _joined(reply.context[-1], 2) if reply.context else []


def _joined(text: str, longest: int) -> list[str]:
    tokens = ["<s>", *_TOKEN.findall(text.lower()), "</s>"]
    return [" ".join(gram) for n in range(1, longest + 1) for gram in ngrams(tokens, n)]


BLOCKS: tuple[tuple[Callable[[Reply], list[str]], float], ...] = (
    (reply_words, 1.0),
    (reply_characters, 0.5),
    (context_words, 0.7),
)
"""What the classifier reads of a reply, and how much it weighs."""


@dataclass(frozen=True)
class Fit:
    """How a classifier is fitted.

    Attributes:
        inverse_penalty: C of logistic regression; the higher, the weaker the penalty on weights.
        iterations: the most that are done.
        tolerance: of the gradient.
    """

    inverse_penalty: float = 10.0
    iterations: int = 100
    tolerance: float = 1e-3


@dataclass(frozen=True)
class TextClassifier:
    """Class probabilities of replies.

    Attributes:
        classes: their names, C of them.
        weights: (F, C) float32, F the columns of all blocks.
        biases: (C,) float64.
    """

    classes: tuple[str, ...]
    weights: np.ndarray
    biases: np.ndarray

    def __post_init__(self) -> None:
        wanted = (len(BLOCKS) * COLUMNS, len(self.classes))
        if self.weights.shape != wanted or self.biases.shape != wanted[1:]:
            raise ValueError(f"weights must have the shape {wanted}; got {self.weights.shape}.")

    def probabilities(self, replies: Sequence[Reply]) -> np.ndarray:
        """(k, C) float64; each row sums to 1."""
        logits = np.tile(self.biases, (len(replies), 1))
        if len(replies):
            rows = self._hasher(replies)  # none is empty: each has the marks of its beginning
            terms = self.weights[rows.indices] * rows.data[:, None]  # a product with few columns
            logits += np.add.reduceat(terms, rows.indptr[:-1])
        odds = np.exp(logits - logits.max(1, keepdims=True, initial=-np.inf))
        return np.asarray(odds / odds.sum(1, keepdims=True))

    @cached_property
    def _hasher(self) -> Callable[[Sequence[Reply]], Any]:
        return hasher()


def hasher() -> Callable[[Sequence[Reply]], Any]:
    """The function from k replies to their features, a sparse matrix (k, F) float64."""
    text = require("sklearn.feature_extraction", _EXTRA, _PURPOSE)
    sparse = require("scipy.sparse", _EXTRA, _PURPOSE)
    counts = text.FeatureHasher(COLUMNS, input_type="string", alternate_sign=False).transform
    return lambda replies: sparse.hstack(
        [_scaled(counts(map(read, replies)), scale) for read, scale in BLOCKS], "csr"
    )


def _scaled(counts: Any, length: float) -> Any:
    """The rows of a sparse matrix (k, COLUMNS), each made as long as that; empty ones stay so."""
    rows = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
    squares = np.bincount(rows, counts.data**2, counts.shape[0])
    counts.data *= length / np.sqrt(squares[rows])
    return counts


def train(replies: Sequence[Reply], labels: Sequence[str], fit: Fit) -> TextClassifier:
    """The classifier fitted to labelled replies; the same data give the same weights.

    Raises:
        ValueError: there are fewer than two classes.
    """
    classes = tuple(sorted(set(labels)))
    if len(classes) < 2:
        raise ValueError(
            "a classifier needs labelled replies of two classes or more; got "
            f"{len(labels)} replies of the classes {list(classes)}. Check the training data."
        )
    features = hasher()(replies)
    seen = np.unique(features.indices)  # weights of all other columns stay at 0
    weights, biases = _fitted(features[:, seen], [classes.index(label) for label in labels], fit)
    table = np.zeros((features.shape[1], len(classes)), np.float32)
    table[seen] = weights
    return TextClassifier(classes, table, biases)


def _fitted(features: Any, labels: Sequence[int], fit: Fit) -> tuple[np.ndarray, np.ndarray]:
    """Weights (f, C) and biases (C,) of logistic regression."""
    linear = require("sklearn.linear_model", _EXTRA, _PURPOSE)
    model = linear.LogisticRegression(
        C=fit.inverse_penalty, max_iter=fit.iterations, tol=fit.tolerance
    )
    model.fit(features, np.array(labels))
    if len(model.classes_) > 2:
        return model.coef_.T, model.intercept_
    sides = np.array([-0.5, 0.5])  # of two classes scikit-learn keeps the difference
    return model.coef_.T * sides, model.intercept_ * sides
