"""What rewards may learn from: what people said, and its dialogue act."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dialgym.rewards import Reply
from dialgym.tasks.daily_dialog.corpus import load_corpus


@dataclass(frozen=True)
class ActExamples:
    """All utterances of the training split whose act is known.

    Attributes:
        data: see `DailyDialog`.
        context: most utterances before each.
    """

    data: Any
    context: int

    def __call__(self) -> Sequence[tuple[Reply, str]]:
        """The utterances as replies, and their acts."""
        corpus = load_corpus(self.data, "train")
        found = []
        for dialogue in range(len(corpus)):
            for turn in range(corpus.length(dialogue)):
                labels = corpus.labels(dialogue, turn)
                if labels.get("act"):
                    context = corpus.context(dialogue, turn, self.context)
                    reply = Reply(corpus.text(dialogue, turn), context, (), labels)
                    found.append((reply, labels["act"]))
        return found
