"""How toxic a comment is, as learned from the data's own labels."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dialgym.rewards import Reply
from dialgym.rewards.classifier import TextClassifier
from dialgym.rewards.toxicity import LEVELS, Toxicity
from dialgym.rewards.trained import trained_classifier
from dialgym.tasks.comments.corpus import UNKNOWN_LABEL, load_corpus


@dataclass(frozen=True, kw_only=True)
class LabelledToxicity(Toxicity):
    """Toxicity by a classifier that is trained on the labels of the training split's comments.

    Attributes:
        comments: the data, see `Comments`.
    """

    comments: Any = None

    def probabilities(self, replies: Sequence[Reply]) -> np.ndarray:
        """(k, 3) float64 over the levels; only the comment itself is read."""
        found = np.zeros((len(replies), len(LEVELS)))
        columns = [int(level) for level in self._trained.classes]
        found[:, columns] = self._trained.probabilities([Reply(reply.text) for reply in replies])
        return found

    @cached_property
    def _trained(self) -> TextClassifier:
        corpus = load_corpus(self.comments, "train")
        rows = np.flatnonzero(corpus.toxicity != UNKNOWN_LABEL).tolist()
        labels = [str(level) for level in corpus.toxicity[rows]]
        return trained_classifier([(Reply(corpus.comments[i]), y) for i, y in zip(rows, labels)])
