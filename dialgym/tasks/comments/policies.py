"""Who can comment by rules: whoever did, or somebody on something else."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from dialgym.simulators import Speaker
from dialgym.tasks.comments.types import CommentsState
from dialgym.tasks.replies import EachReplies

if TYPE_CHECKING:
    from dialgym.tasks.comments.task import Comments

Generator = np.random.Generator


class Logged(EachReplies):
    """Says the comment of the data."""

    def reply(self, task: "Comments", state: CommentsState, rng: Generator) -> str:
        return task.logged(state)


class Random(EachReplies):
    """Says what was commented on anything in the split; all comments are as likely."""

    def reply(self, task: "Comments", state: CommentsState, rng: Generator) -> str:
        comments = task.corpus.comments
        return comments[int(rng.integers(len(comments)))][: task.longest]


POLICIES: Mapping[str, Callable[..., Speaker]] = {"logged": Logged, "random": Random}
