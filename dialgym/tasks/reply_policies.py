"""Scripted speakers of reply tasks: what the data has, and what was said anywhere in it."""

from typing import Any

import numpy as np

from dialgym.simulators import EachReplies
from dialgym.tasks.replies import ReplyTask

Generator = np.random.Generator


class LoggedReply(EachReplies):
    """Says what the data has in this place, whatever was said before."""

    oracle = True

    def reply(self, task: ReplyTask, state: Any, rng: Generator) -> str:
        return task.logged(state)


class RandomReply(EachReplies):
    """Says what was said anywhere in the data; see `ReplyTask.random_reply`."""

    def reply(self, task: ReplyTask, state: Any, rng: Generator) -> str:
        return task.random_reply(rng)
