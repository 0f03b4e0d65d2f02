"""What infos can say about a dialogue as it stands: the situation, and what names the truth."""

from collections.abc import Callable
from functools import partial
from typing import Any

from dialgym.tasks import Task
from dialgym.tasks.posterior import NamesTruth

Note = Callable[[Any], str]
NAMES = frozenset({"anchor", "truth"})
"""All that infos can be asked to say."""


def notes(task: Task, learner: str, anchors: bool, truths: bool) -> dict[str, Note]:
    """The keys that were asked for, each with what it says of a state.

    Args:
        task: the rules.
        learner: the party whose situation is meant.
        anchors: ``anchor``, see `Task.anchor`.
        truths: ``truth``, see `dialgym.tasks.NamesTruth`.

    Raises:
        ValueError: the task cannot name what is hidden.
    """
    found: dict[str, Note] = {}
    if anchors:
        found["anchor"] = partial(task.anchor, party=learner)
    if truths:
        if not isinstance(task, NamesTruth):
            raise ValueError(
                f"truths of {task.name}: expected a task whose learner can name what is hidden "
                f"(naming), such as TwentyQuestions or Wordle; {task.name} has none. Leave truths "
                "at False."
            )
        found["truth"] = task.naming
    return found
