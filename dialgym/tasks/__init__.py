"""Dialogue tasks: the rules of each, written once. One folder a task."""

from dialgym.tasks.acts import Action, ActPolicy, ActSpeaker, PartyActs, RandomActs
from dialgym.tasks.base import Facts, Features, Outcome, Parties, State, Task
from dialgym.tasks.batch import BatchOutcome, DialogueBatch

__all__ = [
    "ActPolicy",
    "ActSpeaker",
    "Action",
    "BatchOutcome",
    "DialogueBatch",
    "Facts",
    "Features",
    "Outcome",
    "Parties",
    "PartyActs",
    "RandomActs",
    "State",
    "Task",
]
