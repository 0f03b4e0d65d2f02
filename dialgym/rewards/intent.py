"""Whether a reply does what was done there: its dialogue act beside that of the reference."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from dialgym.errors import one_of, unknown
from dialgym.rewards.base import Reply
from dialgym.rewards.classifier import TextClassifier
from dialgym.rewards.models import Judged
from dialgym.rewards.trained import Example, trained_classifier


@dataclass(frozen=True, kw_only=True)
class Intent(Judged):
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
