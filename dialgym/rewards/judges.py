"""Judges of a reply: its sentiment and its intent (dialogue act).

The one is a built-in lexicon, the other a classifier trained on labelled replies; either may be any
sequence classifier of Hugging Face.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from dialgym.errors import one_of, unknown
from dialgym.rewards.base import Reply
from dialgym.rewards.classifier import Example, TextClassifier, trained_classifier
from dialgym.rewards.degenerate import SHORTEST, without_degenerate
from dialgym.rewards.models import ClassifierReward
from dialgym.rewards.words import Hit, WeightedLexicon, read_lexicon, tokens_of

ROW = 0.6
"""The share of words of the lexicon above which a text with `SHORTEST` of them is a row of them."""
REACH = 3
"""Words back that a negation or an intensifier is looked for."""
NEGATIONS = {
    "not", "no", "never", "nor", "neither", "none", "nobody", "nothing", "without", "cannot",
    "hardly", "barely", "dont", "cant", "wont", "didnt", "doesnt", "isnt", "wasnt",
}  # fmt: skip
STRONGER = {
    "very", "really", "so", "extremely", "absolutely", "truly", "totally", "such", "too",
    "incredibly", "highly", "most",
}  # fmt: skip
WEAKER = {"slightly", "somewhat", "rather", "fairly", "little", "bit", "quite", "mildly"}
MARKS = set(".,;:!?()")
POLARITY = {"positive": 1.0, "pos": 1.0, "neutral": 0.0, "negative": -1.0, "neg": -1.0}


@dataclass(frozen=True, kw_only=True)
class Sentiment(ClassifierReward):
    """From -1 to 1: by a built-in lexicon with negation, or by any classifier.

    Each word of the lexicon has a value v from -2 to 2. Within three words before it and the same
    clause, an intensifier makes it 1.5 v or 0.5 v, and a negation -0.75 v. The score is
    sum(v) / (1 + sum(|v|)). Of a model, it is the expected value of its label; where several labels
    may hold at once that of their sum, cut off at -1 and 1. By the lexicon, a text that is no reply
    at all (`dialgym.rewards.degenerate`), or of which more than `ROW` are words of the lexicon, has
    -1.

    Attributes:
        values: what the labels of the model are worth, from -1 to 1; by default they are
            positive, neutral and negative, in any case.
    """

    name: ClassVar[str] = "sentiment"
    bounds = (-1.0, 1.0)
    values: Mapping[str, float] | None = None

    def score(self, replies: Sequence[Reply]) -> np.ndarray:
        """Scores (k,) from -1 to 1."""
        if self.model is not None:
            expected = self.classifier.probabilities(replies, turns=0) @ self._worth
            return np.asarray(np.clip(expected, *self.bounds))
        read = [self._read(tokens_of(reply.text)) for reply in replies]
        return without_degenerate(np.array(read, np.float64), replies, self.bounds[0])

    def _read(self, tokens: Sequence[str]) -> float:
        hits = list(self._lexicon.find(tokens))
        if len(hits) >= SHORTEST and len(hits) > ROW * sum(token not in MARKS for token in tokens):
            return self.bounds[0]
        values = [_in_context(tokens, hit) for hit in hits]
        return sum(values) / (1 + sum(map(abs, values)))

    @cached_property
    def _lexicon(self) -> WeightedLexicon:
        return read_lexicon("sentiment")

    @cached_property
    def _worth(self) -> np.ndarray:
        values = POLARITY if self.values is None else self.values
        labels = self.classifier.labels
        named = {str(label).lower(): value for label, value in values.items()}
        missing = [label for label in labels if label.lower() not in named]
        if missing or not all(-1 <= value <= 1 for value in named.values()):
            raise ValueError(
                f"reward 'sentiment' expects a value from -1 to 1 for each label of "
                f"{self.model!r}, which are {', '.join(labels)}; got {dict(values)}. Set `values`."
            )
        return np.array([named[label.lower()] for label in labels], np.float64)


def _in_context(tokens: Sequence[str], hit: Hit) -> float:
    """The value of an entry after what is said just before it."""
    value = hit.value
    for token in reversed(tokens[max(0, hit.start - REACH) : hit.start]):
        if token in MARKS:
            break
        if token in NEGATIONS or token.endswith("n't"):
            value *= -0.75
        elif token in STRONGER or token in WEAKER:
            value *= 1.5 if token in STRONGER else 0.5
    return value


@dataclass(frozen=True, kw_only=True)
class Intent(ClassifierReward):
    """The probability that the reply is of the act in its labels, or whether that is likeliest.

    The classifier is trained on `examples` at the first score and kept in dialgym's cache, or it is
    any sequence classifier of Hugging Face.

    Attributes:
        examples: labelled replies of the training split.
        measure: ``probability``, or ``hit``: 1 where the likeliest act is the labelled one, else 0.
        label: the entry of `Reply.labels` that has the act.
        labels: names of the model's outputs, where its own are others.
        turns: how many utterances before the reply the model reads; all by default.
    """

    name: ClassVar[str] = "intent"
    examples: Callable[[], Sequence[Example]] | None = None
    measure: str = "probability"
    label: str = "act"
    labels: Sequence[str] | None = None
    turns: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("measure", self.measure, ("probability", "hit"), "reward 'intent'")
        if self.model is None and self.examples is None:
            raise ValueError(
                "reward 'intent' needs labelled replies to learn from, or a model. "
                "Give `examples` to make_rewards, or set model to a sequence classifier."
            )

    def score(self, replies: Sequence[Reply]) -> np.ndarray:
        """Scores (k,) from 0 to 1; here trained, 0 of a text that is no reply.

        Raises:
            ValueError: a reply has no label, or one that the classifier does not know.
        """
        wanted = np.array([self._index(reply) for reply in replies], np.int64)
        table = self.probabilities(replies)
        if self.measure == "hit":
            scores = (table.argmax(1) == wanted).astype(np.float64)
        else:
            scores = table[np.arange(len(replies)), wanted]
        scores = np.asarray(scores)
        return scores if self.model is not None else without_degenerate(scores, replies, 0.0)

    def probabilities(self, replies: Sequence[Reply]) -> np.ndarray:
        """(k, C) float64, a column for each of `classes`."""
        if self.model is None:
            return self._trained.probabilities(replies)
        return self.classifier.probabilities(replies, self.turns)

    @cached_property
    def classes(self) -> tuple[str, ...]:
        """The acts that are told apart."""
        if self.model is None:
            return self._trained.classes
        own = self.classifier.labels
        if self.labels is not None and len(self.labels) != len(own):
            raise ValueError(f"labels of reward 'intent': expected {len(own)}; got {self.labels}.")
        return own if self.labels is None else tuple(self.labels)

    @cached_property
    def _trained(self) -> TextClassifier:
        assert self.examples is not None
        return trained_classifier(self.examples())

    def _index(self, reply: Reply) -> int:
        act = reply.labels.get(self.label)
        if act in self.classes:
            return self.classes.index(act)
        where = f"labels[{self.label!r}] of the reply {reply.text!r}, for reward 'intent'"
        raise unknown("act", act, self.classes, where)
