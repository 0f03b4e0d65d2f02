"""How good the mood of a reply is."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from dialgym.rewards.base import Reply
from dialgym.rewards.lexicon import Hit, Lexicon, read_lexicon, tokens_of
from dialgym.rewards.models import Judged

REACH = 3
"""How many words back a negation or an intensifier is looked for."""
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
class Sentiment(Judged):
    """From -1 to 1: by a built-in lexicon with negation, or by any classifier.

    Each word of the lexicon has a value v from -2 to 2. Within three words before it and the same
    clause, an intensifier makes it 1.5 v or 0.5 v, and a negation -0.75 v. The score is
    sum(v) / (1 + sum(|v|)). Of a model, it is the expected value of its label.

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
            return np.asarray(self.classifier.probabilities(replies, turns=0) @ self._worth)
        return np.array([self._read(tokens_of(reply.text)) for reply in replies], np.float64)

    def _read(self, tokens: Sequence[str]) -> float:
        values = [_in_context(tokens, hit) for hit in self._lexicon.find(tokens)]
        return sum(values) / (1 + sum(map(abs, values)))

    @cached_property
    def _lexicon(self) -> Lexicon:
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
