"""Rewards of a comment: how it was or would be received, and how toxic it is."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from dialgym.optional import require
from dialgym.rewards import Reply, Reward
from dialgym.rewards.classifier import Example, TextClassifier, trained_classifier
from dialgym.rewards.degenerate import SHORTEST, without_degenerate
from dialgym.rewards.toxicity import FIT, LEVELS, Toxicity, ruled
from dialgym.rewards.words import words
from dialgym.tasks.comments.corpus import UNKNOWN_LABEL, load_corpus, load_splits
from dialgym.tasks.corpora import training_split

TRANSFORMS: Mapping[str, Callable[[Any], Any]] = {
    "raw": lambda scores: scores,
    "sign": lambda scores: np.where(np.isnan(scores), scores, np.where(scores > 0, 1.0, -1.0)),
    "log": lambda scores: np.sign(scores) * np.log1p(np.abs(scores)),
}
"""Functions of scores, by name."""
TOKEN = re.compile(r"\w\w")
"""A text has a TF-IDF vector if this is in it."""
Pair = tuple[str, str]
"""A parent and a comment."""
LOGGED = "score"
"""The label of a comment of the data, as a number made of its score."""


@dataclass(frozen=True)
class Score(Reward):
    """The score of a comment.

    That of a comment of the data is its own; that of another is predicted by a ridge regression
    on TF-IDF vectors of parent and comment, learned from the training split when it is first
    needed.

    Attributes:
        data: see `Comments`.
        transform: what is made of scores, one of `TRANSFORMS`.
        predict_all: comments of the data get a predicted score too.
        bounds: lowest and highest score of the data; predictions are kept within.

    Raises:
        ValueError: the data has no scores, or no training split, or nothing in that has a score and
            a word of two letters to learn from.
    """

    name: ClassVar[str] = "score"
    data: Any = None
    transform: str = "log"
    predict_all: bool = False

    def __post_init__(self) -> None:
        splits = load_splits(self.data)
        training_split(splits, self.data, "Comments: the model of scores")
        scores = transformed(np.concatenate([c.scores for c in splits.values()]), self.transform)
        scores = scores[np.isfinite(scores)]
        if not len(scores):
            raise ValueError(
                f"Comments: the data {str(self.data)!r} has no scores to be rewarded with. "
                "Give data with a column score, or another reward=."
            )
        if not _columns(self._training()[0]):
            raise ValueError(
                f"Comments: no row in the training split of the data {str(self.data)!r} has both a "
                "score and a word, so that scores cannot be predicted. Give such rows, or another "
                "reward= or model=."
            )
        object.__setattr__(self, "bounds", (float(scores.min()), float(scores.max())))

    def score(self, replies: Sequence[Reply]) -> np.ndarray:
        """Scores (k,) within the bounds."""
        known = np.array([self._logged(reply) for reply in replies], np.float64)
        new = np.flatnonzero(np.isnan(known))
        if len(new):
            known[new] = self._predict([replies[i] for i in new.tolist()])
        return known

    def _logged(self, reply: Reply) -> float:
        is_logged = reply.text in reply.references and not self.predict_all
        return float(reply.labels.get(LOGGED, np.nan)) if is_logged else np.nan

    def _predict(self, replies: Sequence[Reply]) -> np.ndarray:
        pairs = [("\n".join(reply.context), reply.text) for reply in replies]
        found: np.ndarray = self._regression.predict(pairs)
        if self.transform == "sign":
            found = transformed(found, "sign")
        return without_degenerate(np.clip(found, *self.bounds), replies, self.bounds[0])

    @cached_property
    def _regression(self) -> Any:
        pairs, scores = self._training()
        return _regression(_columns(pairs)).fit(pairs, scores)

    def _training(self) -> tuple[list[Pair], np.ndarray]:
        """Parents and comments of the training split that have scores, and these."""
        corpus = load_corpus(self.data, "train")
        scores = transformed(corpus.scores, self.transform)
        rows = np.flatnonzero(np.isfinite(scores)).tolist()
        return [(corpus.parents[i], corpus.comments[i]) for i in rows], scores[rows]


def transformed(scores: np.ndarray, transform: str) -> np.ndarray:
    """The scores as rewards, by one of `TRANSFORMS`."""
    found: np.ndarray = TRANSFORMS[transform](scores)
    return found


def _columns(pairs: Sequence[Pair]) -> list[int]:
    """The places in pairs where some text has a token: without one there is nothing to fit."""
    return [i for i in (0, 1) if any(TOKEN.search(pair[i]) for pair in pairs)]


def _regression(places: Sequence[int]) -> Any:
    """A regression on the texts in these places of pairs."""
    compose = require("sklearn.compose", "rewards", "a model of scores")
    text = require("sklearn.feature_extraction.text", "rewards", "a model of scores")
    linear = require("sklearn.linear_model", "rewards", "a model of scores")
    pipeline = require("sklearn.pipeline", "rewards", "a model of scores")
    columns = [(str(i), text.TfidfVectorizer(sublinear_tf=True), i) for i in places]
    return pipeline.make_pipeline(compose.ColumnTransformer(columns), linear.Ridge())


@dataclass(frozen=True, kw_only=True)
class LabelledToxicity(Toxicity):
    """Toxicity by what the training split calls toxic, and by the built-in rules.

    A classifier is taught the labels of the split's comments, and that what was commented on is
    harmless. A comment's probability of a level or more is the higher one of the classifier's and
    of the rules': no data set has every kind of abuse. Of texts of fewer than `SHORTEST` words it
    is that of the rules alone: they share too little with the comments of a data set.

    Attributes:
        comments: the data, see `Comments`.
    """

    comments: Any = None

    def probabilities(self, replies: Sequence[Reply]) -> np.ndarray:
        """(k, 3) float64 over the levels; only the comment itself is read."""
        taught = np.zeros((len(replies), len(LEVELS)))
        columns = [int(level) for level in self._trained.classes]
        taught[:, columns] = self._trained.probabilities([Reply(reply.text) for reply in replies])
        rules = ruled(replies)
        is_short = np.array([len(words(reply.text)) < SHORTEST for reply in replies], bool)
        return np.where(is_short[:, None], rules, worse_of(taught, rules))

    @cached_property
    def _trained(self) -> TextClassifier:
        parents = load_corpus(self.comments, "train").parents
        harmless = dict.fromkeys(parent for parent in parents if parent)
        examples = LevelExamples(self.comments, "train")()
        return trained_classifier(
            [*examples, *((Reply(parent), LEVELS[0]) for parent in harmless)], FIT
        )


@dataclass(frozen=True)
class LevelExamples:
    """The comments of a split whose level of toxicity is known.

    Attributes:
        data: see `Comments`.
        split: of the data.
    """

    data: Any
    split: str

    def __call__(self) -> list[Example]:
        """The comments as replies, and their levels."""
        corpus = load_corpus(self.data, self.split)
        rows = np.flatnonzero(corpus.toxicity != UNKNOWN_LABEL).tolist()
        return [(Reply(corpus.comments[i]), str(corpus.toxicity[i])) for i in rows]


def worse_of(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Probabilities (k, C) of levels, each of a level or more being the higher of two (k, C)."""
    at_least = np.maximum(*(np.cumsum(p[:, ::-1], 1)[:, ::-1] for p in (one, other)))
    return np.asarray(at_least - np.pad(at_least[:, 1:], ((0, 0), (0, 1))))
