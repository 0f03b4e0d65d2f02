"""Scripted speakers of logged dialogues: what was said there, and what was said anywhere."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from dialgym.simulators import EachReplies, Speaker
from dialgym.tasks.logged.types import LoggedState

if TYPE_CHECKING:
    from dialgym.tasks.logged.task import Logged

Generator = np.random.Generator


class LoggedScript(EachReplies):
    """Says what was said at this turn of the log, whatever was said before."""

    oracle = True

    def reply(self, task: "Logged", state: LoggedState, rng: Generator) -> str:
        return task.logged(state)


class RandomLoggedReply(EachReplies):
    """Says what the system said anywhere in the log; all its utterances are as likely."""

    def reply(self, task: "Logged", state: LoggedState, rng: Generator) -> str:
        said = task.corpus.said
        return task.corpus.texts[said[int(rng.integers(len(said)))]]


PARTNERS: Mapping[str, Callable[..., Speaker]] = {"script": LoggedScript}
POLICIES: Mapping[str, Callable[..., Speaker]] = {
    "reference": LoggedScript,
    "random": RandomLoggedReply,
}
