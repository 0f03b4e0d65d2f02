"""What rewards may learn from: comments and their labels."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dialgym.rewards import Reply
from dialgym.tasks.comments.corpus import UNKNOWN_LABEL, load_corpus


@dataclass(frozen=True)
class ToxicityExamples:
    """All comments of the training split whose toxicity is known.

    Attributes:
        data: see `Comments`.
    """

    data: Any

    def __call__(self) -> Sequence[tuple[Reply, str]]:
        """The comments as replies, and their labels ``0``, ``1`` and ``2``."""
        corpus = load_corpus(self.data, "train")
        found = []
        for i in np.flatnonzero(corpus.toxicity != UNKNOWN_LABEL).tolist():
            reply = Reply(corpus.comments[i], (corpus.parents[i],))
            found.append((reply, str(corpus.toxicity[i])))
        return found
