"""A judge of evaluations: naive Bayes on the words of a reply, taught labels that no reward saw.

By another method than the classifiers that pay (`dialgym.rewards.classifier`, logistic regression
on words, characters and context), and on other replies: those of the validation split. What is
learned in order to please the one need not please the other.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from dialgym.rewards.base import Reply, Reward
from dialgym.rewards.classifier import Example
from dialgym.rewards.degenerate import without_degenerate
from dialgym.rewards.words import ngrams, words

_START, _END = "<", ">"
Feature = str | tuple[str, ...]


class NaiveBayes:
    """Multinomial naive Bayes over which words and pairs of words a text has, Lewis (1998).

    Args:
        examples: texts and their classes, of two classes or more.
        smoothing: is added to the count of each feature in each class (Lidstone).

    Attributes:
        classes: their names, C of them.

    Raises:
        ValueError: there are fewer than two classes.
    """

    def __init__(self, examples: Sequence[tuple[str, str]], smoothing: float = 0.1) -> None:
        self.classes = tuple(sorted({label for _, label in examples}))
        if len(self.classes) < 2:
            raise ValueError(
                "a naive Bayes classifier needs labelled texts of two classes or more; got "
                f"{len(examples)} texts of the classes {list(self.classes)}."
            )
        counts: Counter[tuple[Feature, int]] = Counter()
        prior = np.zeros(len(self.classes))
        for text, label in examples:
            place = self.classes.index(label)
            prior[place] += 1
            counts.update((feature, place) for feature in features(text))
        table = self._table(counts) + smoothing
        self._prior = np.log(prior / prior.sum())
        self._weights = np.log(table / table.sum(0))

    def _table(self, counts: Mapping[tuple[Feature, int], int]) -> np.ndarray:
        """(F, C) how many texts of each class have each feature."""
        distinct = dict.fromkeys(feature for feature, _ in counts)
        self._rows = {feature: row for row, feature in enumerate(distinct)}
        table = np.zeros((len(distinct), len(self.classes)))
        for (feature, place), count in counts.items():
            table[self._rows[feature], place] = count
        return table

    def probabilities(self, texts: Sequence[str]) -> np.ndarray:
        """(k, C) float64 over the classes; words that were never read count for nothing."""
        known = [[self._rows[f] for f in features(text) if f in self._rows] for text in texts]
        logits = [self._prior + self._weights[rows].sum(0) for rows in known]
        table = np.array(logits).reshape(-1, len(self.classes))
        odds = np.exp(table - table.max(1, keepdims=True))
        return np.asarray(odds / odds.sum(1, keepdims=True))


def features(text: str) -> list[Feature]:
    """Each word and pair of neighbouring words once, the pairs with the ends of the text."""
    said = words(text)
    return list(dict.fromkeys([*said, *ngrams([_START, *said, _END], 2)]))


@dataclass(frozen=True)
class Judge(Reward):
    """1 where naive Bayes takes a reply for what is wanted, else 0; 0 of what is no reply at all.

    Attributes:
        examples: labelled replies that it learns from when it first scores.
        wanted: the class that replies ought to be of; None where that is the reply's own `label`.
        label: the entry of `Reply.labels` that has the class.
        smoothing: see `NaiveBayes`.
    """

    name: ClassVar[str] = "judge"
    examples: Callable[[], Sequence[Example]]
    wanted: str | None = None
    label: str = "act"
    smoothing: float = 0.1

    def score(self, replies: Sequence[Reply]) -> np.ndarray:
        """Scores (k,) 0 or 1."""
        found = self._trained.probabilities([reply.text for reply in replies]).argmax(1)
        classes = self._trained.classes
        hits = [classes[i] == self._wanted(reply) for i, reply in zip(found.tolist(), replies)]
        return without_degenerate(np.array(hits, np.float64), replies, 0.0)

    def _wanted(self, reply: Reply) -> Any:
        return reply.labels.get(self.label) if self.wanted is None else self.wanted

    @cached_property
    def _trained(self) -> NaiveBayes:
        examples = [(reply.text, label) for reply, label in self.examples()]
        return NaiveBayes(examples, self.smoothing)
