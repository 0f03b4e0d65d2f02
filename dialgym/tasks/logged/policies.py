"""Scripted speakers of logged dialogues: what was said there, and what was said anywhere."""

import numpy as np

from dialgym.simulators import EachReplies
from dialgym.tasks.logged.task import Logged
from dialgym.tasks.logged.types import LoggedState

Generator = np.random.Generator


class LoggedScript(EachReplies):
    """Says what was said at this turn of the log, whatever was said before."""

    oracle = True

    def reply(self, task: Logged, state: LoggedState, rng: Generator) -> str:
        return task.logged(state)


class RandomLoggedReply(EachReplies):
    """Says what the system said anywhere in the log; all its utterances are as likely."""

    def reply(self, task: Logged, state: LoggedState, rng: Generator) -> str:
        said = task.corpus.said
        return task.corpus.texts[said[int(rng.integers(len(said)))]]
