"""Scripted commenter: the best comment on the same parent."""

from collections.abc import Mapping, Sequence

import numpy as np

from dialgym.io.cache import PerTask
from dialgym.simulators import EachReplies
from dialgym.tasks.comments.task import Comments
from dialgym.tasks.comments.types import CommentsState

Generator = np.random.Generator


class BestComment(EachReplies):
    """Says what the rewards like best of all comments in the split on the same parent."""

    oracle = True

    def __init__(self) -> None:
        self._known = PerTask()

    def reply(self, task: Comments, state: CommentsState, rng: Generator) -> str:
        texts = self._comments(task)[task.corpus.parents[state.index]]
        (values,) = task.rewards.score([task.reply(state, text) for text in texts]).values()
        return texts[int((task.scale * values).argmax())]

    def _comments(self, task: Comments) -> Mapping[str, Sequence[str]]:
        """The comments on each parent."""
        if task not in self._known:
            found: dict[str, list[str]] = {}
            for parent, comment in zip(task.corpus.parents, task.corpus.comments):
                found.setdefault(parent, []).append(comment[: task.longest])
            self._known[task] = found
        known: Mapping[str, Sequence[str]] = self._known[task]
        return known
