"""How toxic a reply is: 0 for not at all, 1 for mildly, 2 for severely."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from dialgym.errors import one_of
from dialgym.rewards.base import Reply
from dialgym.rewards.classifier import TextClassifier
from dialgym.rewards.labelled import read_labelled
from dialgym.rewards.lexicon import Lexicon, read_lexicon, tokens_of
from dialgym.rewards.models import Judged
from dialgym.rewards.trained import trained_classifier

LEVELS = ("0", "1", "2")
"""Not toxic, mildly, severely: the labels of ILQL's task of comments, Snell et al. (2023)."""


@dataclass(frozen=True, kw_only=True)
class Toxicity(Judged):
    """A value for each level of toxicity, 0 to 2; by default its negative.

    The level comes from a built-in lexicon (that of its worst entry), from a classifier trained on
    `data` at the first score and kept in dialgym's cache, or from a model of Hugging Face.

    Attributes:
        values: the scores of levels 0, 1 and 2.
        measure: ``label`` scores the likeliest level, ``expected`` the mean over all of them.
        data: a CSV or JSONL file of texts and labels to learn from.
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
