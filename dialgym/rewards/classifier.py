"""A linear text classifier, small enough to be trained on first use and kept in the cache.

Multinomial logistic regression over hashed n-grams: of the words of the reply, of its characters,
and of the words of the last utterance before it; where asked for, over the kinds of abuse that
rules find in the reply. Each block is of length 1, then scaled.
"""

import hashlib
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import astuple, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from dialgym.errors import one_of, unknown
from dialgym.io.cache import UNREADABLE, cache_dir
from dialgym.io.checksums import check, write_checked
from dialgym.io.tables import FORMATS, read_rows
from dialgym.optional import require
from dialgym.rewards.abuse import read_abuse
from dialgym.rewards.base import Reply
from dialgym.rewards.words import ngrams

COLUMNS = 2**17
"""Columns that the n-grams of a block are hashed to."""
_TOKEN = re.compile(r"\w+(?:['’]\w+)*|[^\w\s]")
VERSION = 1
"""Of the features; a change of what the blocks read needs a new one."""
TEXT_AND_LABEL = ("text", "label")
DAVIDSON = ("tweet", "class")
"""The columns of Davidson et al. (2017), Automated Hate Speech Detection."""
DAVIDSON_LEVELS = {"0": "2", "1": "1", "2": "0"}
Example = tuple[Reply, str]
"""A reply and its label."""
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


def abuse_kinds(reply: Reply) -> list[str]:
    """The kinds of abuse in the reply, twice where there are several of a kind; or that none is."""
    counts = read_abuse().counts(reply.text)
    return [kind for kind, count in counts.items() for _ in range(min(count, 2))] or ["none"]


def _joined(text: str, longest: int) -> list[str]:
    tokens = ["<s>", *_TOKEN.findall(text.lower()), "</s>"]
    return [" ".join(gram) for n in range(1, longest + 1) for gram in ngrams(tokens, n)]


Blocks = tuple[tuple[Callable[[Reply], list[str]], float], ...]
BLOCKS: Blocks = ((reply_words, 1.0), (reply_characters, 0.5), (context_words, 0.7))
"""Parts of a reply that a classifier reads, and their weights."""
ABUSE_BLOCKS: Blocks = (*BLOCKS, (abuse_kinds, 1.0))
"""The same of one that reads abuse."""


@dataclass(frozen=True)
class Fit:
    """Settings of fitting a classifier.

    Attributes:
        inverse_penalty: C of logistic regression; the higher, the weaker the penalty on weights.
        iterations: the most that are done.
        tolerance: of the gradient.
        reads_abuse: the kinds of abuse in a reply are features too.
    """

    inverse_penalty: float = 10.0
    iterations: int = 100
    tolerance: float = 1e-3
    reads_abuse: bool = False

    @property
    def blocks(self) -> Blocks:
        """Text that the classifier reads."""
        return ABUSE_BLOCKS if self.reads_abuse else BLOCKS


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
        rows = len(self.blocks) * COLUMNS
        if self.weights.shape != (rows, len(self.classes)) or len(self.biases) != len(self.classes):
            raise ValueError(
                f"weights must have the shape {(rows, len(self.classes))}; got "
                f"{self.weights.shape} and {len(self.biases)} biases."
            )

    @property
    def blocks(self) -> Blocks:
        """Features that the classifier reads, one for each weight."""
        return ABUSE_BLOCKS if len(self.weights) == len(ABUSE_BLOCKS) * COLUMNS else BLOCKS

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
        return hasher(self.blocks)


def hasher(blocks: Blocks = BLOCKS) -> Callable[[Sequence[Reply]], Any]:
    """The function from k replies to their features, a sparse matrix (k, F) float64."""
    text = require("sklearn.feature_extraction", _EXTRA, _PURPOSE)
    sparse = require("scipy.sparse", _EXTRA, _PURPOSE)
    counts = text.FeatureHasher(COLUMNS, input_type="string", alternate_sign=False).transform
    return lambda replies: sparse.hstack(
        [_scaled(counts(map(read, replies)), scale) for read, scale in blocks], "csr"
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
    features = hasher(fit.blocks)(replies)
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


def trained_classifier(examples: Sequence[Example], fit: Fit | None = None) -> TextClassifier:
    """The classifier of these examples: from the cache, or trained and kept there.

    A file that cannot be read is made again; a cache that cannot be written is not an error.
    """
    fit = fit or Fit()
    path = cache_dir() / "classifiers" / f"{digest(examples, fit)}.npz"
    with suppress(*UNREADABLE, KeyError):
        check(path, required=True)
        return _read(path)
    replies, labels = zip(*examples) if examples else ((), ())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that the solver stopped at its last iteration
        classifier = train(replies, labels, fit)
    with suppress(OSError):
        write_checked(path, lambda temporary: _write(temporary, classifier))
    return classifier


def digest(examples: Sequence[Example], fit: Fit) -> str:
    """Fingerprint of data and settings, a short hexadecimal name."""
    blocks = [(read.__name__, scale) for read, scale in fit.blocks]
    total = hashlib.blake2b(repr((VERSION, blocks, COLUMNS, astuple(fit))).encode(), digest_size=16)
    for reply, label in examples:
        for text in (reply.text, reply.context[-1] if reply.context else None, label):
            total.update(b"\0" if text is None else b"\1" + text.encode("utf-8", "surrogatepass"))
    return total.hexdigest()


def _write(path: Path, classifier: TextClassifier) -> None:
    classes = np.array(classifier.classes)
    np.savez_compressed(path, classes=classes, weights=classifier.weights, biases=classifier.biases)


def _read(path: Path) -> TextClassifier:
    with np.load(path, allow_pickle=False) as stored:
        classes = tuple(str(name) for name in stored["classes"])
        return TextClassifier(classes, stored["weights"], stored["biases"])


def read_labelled(
    path: str,
    columns: Sequence[str] | None,
    levels: Mapping[str, Any] | None,
    classes: Sequence[str],
) -> list[Example]:
    """The texts of a file of rows with the classes that `levels` gives their labels.

    Raises:
        ValueError: the file, a column or a label is not what it should be.
    """
    file = Path(path).expanduser()
    if not file.is_file():
        raise ValueError(
            f"expected a file of labelled texts, {', '.join(FORMATS)}; got {str(path)!r}, "
            "which is no file."
        )
    rows = list(read_rows(file))
    if not rows:
        raise ValueError(f"{path}: expected labelled texts; got none.")
    names = set(rows[0][1])
    text, label = columns or (DAVIDSON if set(DAVIDSON) <= names else TEXT_AND_LABEL)
    if levels is None:
        levels = DAVIDSON_LEVELS if (text, label) == DAVIDSON else {name: name for name in classes}
    named = {str(own): str(level) for own, level in levels.items()}
    for level in named.values():
        one_of("level", level, classes, path)
    return [_example(row, text, label, named, str(location)) for location, row in rows]


def _example(
    row: Mapping[str, Any], text: str, label: str, levels: Mapping[str, str], where: str
) -> Example:
    for column in (text, label):
        if row.get(column) is None:
            raise unknown("column", column, row, where)
    own = str(row[label])
    if own not in levels:
        raise unknown("label", own, levels, where)
    return Reply(str(row[text])), levels[own]
