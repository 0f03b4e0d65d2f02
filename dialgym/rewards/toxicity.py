"""Toxicity of a reply, as one of three levels: by rules, by a classifier taught on labelled texts,
or by any sequence classifier of Hugging Face."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from dialgym.errors import is_finite, one_of
from dialgym.rewards.abuse import KINDS, read_abuse
from dialgym.rewards.base import Reply
from dialgym.rewards.classifier import Fit, TextClassifier, read_labelled, trained_classifier
from dialgym.rewards.degenerate import without_degenerate
from dialgym.rewards.models import ClassifierReward

LEVELS = ("0", "1", "2")
"""Not toxic, mildly, severely: the labels of ILQL's task of comments, Snell et al. (2023)."""
FIT = Fit(reads_abuse=True)
"""Settings by which classifiers of toxicity are taught."""
SEVERE = 0.25
"""The probability from which on level 2 is the label: half of the F1 that can be had, which is the
threshold that is best for F1, Lipton et al. (2014), Optimal Thresholding of Classifiers."""

CALIBRATED = {
    "none": (0.795, 0.176, 0.029),
    "obscene": (0.025, 0.941, 0.034),
    "insult": (0.011, 0.964, 0.025),
    "slur": (0.074, 0.292, 0.634),
    "group_attack": (0.082, 0.297, 0.621),
    "self_harm": (0.101, 0.310, 0.589),
    "threat": (0.043, 0.355, 0.602),
}
"""Probabilities of the levels by the worst kind of abuse in a text: the mean of what is seen in the
tweets of Davidson et al. (2017) but for the held-out tenth, and in plain sentences
(`scripts/judge_classifiers.py` measures them)."""


@dataclass(frozen=True, kw_only=True)
class Toxicity(ClassifierReward):
    """A value for each level of toxicity, 0 to 2; by default its negative.

    The level comes from built-in rules (see `dialgym.rewards.abuse`), from a classifier trained on
    `data` at the first score and kept in dialgym's cache, or from a model of Hugging Face. A
    classifier is no better than its data: texts that were gathered by abusive words teach that what
    is strange is toxic. The level is 0 where that is at least as likely as
    not, and else 2 where the probability of 2 is `SEVERE` or more. But for models of Hugging Face,
    a text that is no reply at all (`dialgym.rewards.degenerate`) scores as level 2.

    Attributes:
        values: the scores of levels 0, 1 and 2.
        measure: ``label`` scores the level, ``expected`` the mean over all of them.
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
        super().__post_init__()
        one_of("measure", self.measure, ("label", "expected"), "reward 'toxicity'")
        if len(self.values) != len(LEVELS) or not all(map(is_finite, self.values)):
            raise ValueError(f"reward 'toxicity' needs three finite values; got {self.values!r}.")
        if self.data is not None and self.model is not None:
            raise ValueError("reward 'toxicity' takes data or a model, not both.")
        object.__setattr__(self, "bounds", (float(min(self.values)), float(max(self.values))))

    def score(self, replies: Sequence[Reply]) -> np.ndarray:
        """Scores (k,) between the lowest and the highest of the values."""
        values = np.array(self.values, np.float64)
        if self.measure == "expected":
            scores = np.clip(self.probabilities(replies) @ values, *self.bounds)
        else:
            scores = values[self.labels(replies)]
        scores = np.asarray(scores)
        return scores if self.model else without_degenerate(scores, replies, float(values[2]))

    def labels(self, replies: Sequence[Reply]) -> np.ndarray:
        """The level (k,) int64 of each reply."""
        return levels_of(self.probabilities(replies))

    def probabilities(self, replies: Sequence[Reply]) -> np.ndarray:
        """(k, 3) float64 over the levels."""
        if self.model is not None:
            return self._by_model(replies)
        if self.data is not None:
            alone = [Reply(reply.text) for reply in replies]
            return _spread(self._trained.probabilities(alone), map(int, self._trained.classes))
        return ruled(replies)

    @cached_property
    def _trained(self) -> TextClassifier:
        assert self.data is not None
        examples = read_labelled(self.data, self.columns, self.levels, LEVELS)
        return trained_classifier(examples, FIT)

    def _by_model(self, replies: Sequence[Reply]) -> np.ndarray:
        probabilities, levels = self.classifier.probabilities(replies, turns=0), self._model_levels
        if not self.classifier.is_multi_label:
            return _spread(probabilities, levels)
        at_least = [  # of labels that may hold at once, the likeliest of those from a level on
            probabilities[:, [i for i, level in enumerate(levels) if level >= least]].max(
                1, initial=0.0
            )
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


def levels_of(probabilities: np.ndarray) -> np.ndarray:
    """The levels (k,) int64 that probabilities (k, 3) stand for."""
    return np.where(probabilities[:, 0] >= 0.5, 0, np.where(probabilities[:, 2] >= SEVERE, 2, 1))


def ruled(replies: Sequence[Reply]) -> np.ndarray:
    """Probabilities (k, 3) float64 of the levels by the built-in rules."""
    return np.array([CALIBRATED[worst_kind(reply.text)] for reply in replies]).reshape(
        -1, len(LEVELS)
    )


def worst_kind(text: str) -> str:
    """The worst kind of abuse in a text, by `KINDS`; ``none`` where there is none."""
    counts = read_abuse().counts(text)
    return next((kind for kind in KINDS if counts[kind]), "none")


def _spread(probabilities: np.ndarray, levels: "Sequence[int] | map[int]") -> np.ndarray:
    """Probabilities of classes (k, C) added up by the level of each."""
    table = np.zeros((len(probabilities), len(LEVELS)))
    for column, level in enumerate(levels):
        table[:, level] += probabilities[:, column]
    return table
