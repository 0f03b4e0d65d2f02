"""A reward model: a sequence classifier with one output, learnt from comparisons or scores."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dialgym.rewards.base import Reply
from dialgym.rewards.models import Judged, SequenceClassifier


@dataclass(frozen=True, kw_only=True)
class LearnedReward(Judged):
    """The output of a reward model for the pair of context and reply, Stiennon et al. (2020).

    Attributes:
        turns: how many utterances before the reply it reads; all by default.
        sigmoid: 1 / (1 + exp(-x)) of the output x, from 0 to 1.
        clip: lowest and highest score; none by default, and the bounds are infinite then.
    """

    name: ClassVar[str] = "learned"
    turns: int | None = None
    sigmoid: bool = False
    clip: Sequence[float] | None = None

    def __post_init__(self) -> None:
        if self.model is None:
            raise ValueError("reward 'learned' needs `model`, a folder or a name on the hub.")
        low, high = (0.0, 1.0) if self.sigmoid else (-np.inf, np.inf)
        if self.clip is not None:
            if len(self.clip) != 2:
                raise ValueError(
                    f"clip of reward 'learned' must be two numbers; got {self.clip!r}."
                )
            low, high = max(low, float(self.clip[0])), min(high, float(self.clip[1]))
        if not low < high:
            raise ValueError(f"clip of reward 'learned' leaves nothing; got {self.clip!r}.")
        object.__setattr__(self, "bounds", (low, high))

    def score(self, replies: Sequence[Reply]) -> np.ndarray:
        """Scores (k,) within the bounds.

        Raises:
            ValueError: the model cannot be loaded, or has several outputs.
        """
        outputs = self.classifier.logits(replies, self.turns)[:, 0]
        scores = 1 / (1 + np.exp(-outputs)) if self.sigmoid else outputs
        return np.asarray(np.clip(scores, *self.bounds) if self.clip is not None else scores)

    def _check(self, found: SequenceClassifier) -> None:
        if len(found.labels) != 1:
            raise ValueError(
                f"reward 'learned' expects a model with one output; {self.model!r} has "
                f"{len(found.labels)}: {', '.join(found.labels)}. Train one by num_labels=1."
            )
