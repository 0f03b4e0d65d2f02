"""Judges of a reply: its sentiment, its toxicity, and its intent (dialogue act).

Each is a built-in lexicon or a classifier trained on labelled replies, or any sequence classifier
of Hugging Face.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from dialgym.errors import one_of, unknown
from dialgym.rewards.base import Reply
from dialgym.rewards.classifier import Example, TextClassifier, read_labelled, trained_classifier
from dialgym.rewards.models import ClassifierReward
from dialgym.rewards.words import Hit, Lexicon, read_lexicon, tokens_of

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
LEVELS = ("0", "1", "2")
"""Not toxic, mildly, severely: the labels of ILQL's task of comments, Snell et al. (2023)."""


@dataclass(frozen=True, kw_only=True)
class Sentiment(ClassifierReward):
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


@dataclass(frozen=True, kw_only=True)
class Toxicity(ClassifierReward):
    """A value for each level of toxicity, 0 to 2; by default its negative.

    The level comes from a built-in lexicon (that of its worst entry), from a classifier trained on
    `data` at the first score and kept in dialgym's cache, or from a model of Hugging Face.

    Attributes:
        values: the scores of levels 0, 1 and 2.
        measure: ``label`` scores the likeliest level, ``expected`` the mean over all of them.
        data: a file of texts and labels to learn from: CSV, TSV, JSONL, JSON or Parquet.
        columns: its columns of text and label.
        levels: which level, 0 to 2, a label of the data or the model stands for; by default the
            labels are 0, 1 and 2 themselves. The columns `tweet` and `class` of Davidson et al.
            (2017) are known: hate speech is 2, offensive language 1, neither 0.
    """

    name: ClassVar[str] = "toxicity"
    values: Sequence[float] = (0.0, -1.0, -2.0)
    measure: str = "label"
    data: str | None = None
    columns: Sequence[str] | None = None
    levels: Mapping[str, int] | None = None

    def __post_init__(self) -> None:
        one_of("measure", self.measure, ("label", "expected"), "reward 'toxicity'")
        if len(self.values) != len(LEVELS) or not np.isfinite(self.values).all():
            raise ValueError(f"reward 'toxicity' needs three finite values; got {self.values!r}.")
        if self.data is not None and self.model is not None:
            raise ValueError("reward 'toxicity' takes data or a model, not both.")
        object.__setattr__(self, "bounds", (float(min(self.values)), float(max(self.values))))

    def score(self, replies: Sequence[Reply]) -> np.ndarray:
        """Scores (k,) between the lowest and the highest of the values."""
        values = np.array(self.values, np.float64)
        if self.measure == "expected":
            return np.clip(self.probabilities(replies) @ values, *self.bounds)
        return np.asarray(values[self.labels(replies)])

    def labels(self, replies: Sequence[Reply]) -> np.ndarray:
        """The likeliest level (k,) int64 of each reply."""
        return np.asarray(self.probabilities(replies).argmax(1))

    def probabilities(self, replies: Sequence[Reply]) -> np.ndarray:
        """(k, 3) float64 over the levels; the lexicon is always sure."""
        if self.model is not None:
            return self._by_model(replies)
        if self.data is not None:
            alone = [Reply(reply.text) for reply in replies]
            return _spread(self._trained.probabilities(alone), map(int, self._trained.classes))
        levels = [self._worst(reply.text) for reply in replies]
        return np.asarray(np.eye(len(LEVELS))[np.array(levels, np.int64)])

    def _worst(self, text: str) -> int:
        return int(max((hit.value for hit in self._lexicon.find(tokens_of(text))), default=0))

    @cached_property
    def _lexicon(self) -> Lexicon:
        return read_lexicon("toxicity")

    @cached_property
    def _trained(self) -> TextClassifier:
        assert self.data is not None
        return trained_classifier(read_labelled(self.data, self.columns, self.levels, LEVELS))

    def _by_model(self, replies: Sequence[Reply]) -> np.ndarray:
        found, levels = self.classifier.probabilities(replies, turns=0), self._model_levels
        if not self.classifier.is_multi_label:
            return _spread(found, levels)
        at_least = [  # of labels that may hold at once, the likeliest of those from a level on
            found[:, [i for i, level in enumerate(levels) if level >= least]].max(1, initial=0.0)
            for least in (1, 2)
        ]
        return np.stack([1 - at_least[0], at_least[0] - at_least[1], at_least[1]], 1)

    @cached_property
    def _model_levels(self) -> list[int]:
        labels = self.classifier.labels
        stands = {level: int(level) for level in LEVELS} if self.levels is None else self.levels
        named = {str(label).lower(): level for label, level in stands.items()}
        wrong = [label for label in labels if named.get(label.lower()) not in (0, 1, 2)]
        if wrong:
            raise ValueError(
                f"reward 'toxicity' expects a level from 0 to 2 for each label of {self.model!r}, "
                f"which are {', '.join(labels)}; got {dict(stands)}. Set `levels`."
            )
        return [named[label.lower()] for label in labels]


def _spread(found: np.ndarray, levels: "Sequence[int] | map[int]") -> np.ndarray:
    """Probabilities of classes (k, C) added up by the level of each."""
    table = np.zeros((len(found), len(LEVELS)))
    for column, level in enumerate(levels):
        table[:, level] += found[:, column]
    return table


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
        one_of("measure", self.measure, ("probability", "hit"), "reward 'intent'")
        if self.model is None and self.examples is None:
            raise ValueError(
                "reward 'intent' needs labelled replies to learn from, or a model. "
                "Give `examples` to make_rewards, or set model to a sequence classifier."
            )

    def score(self, replies: Sequence[Reply]) -> np.ndarray:
        """Scores (k,) from 0 to 1.

        Raises:
            ValueError: a reply has no label, or one that the classifier does not know.
        """
        wanted = np.array([self._index(reply) for reply in replies], np.int64)
        table = self.probabilities(replies)
        if self.measure == "hit":
            return (table.argmax(1) == wanted).astype(np.float64)
        return np.asarray(table[np.arange(len(replies)), wanted])

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
