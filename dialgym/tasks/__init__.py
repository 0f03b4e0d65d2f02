"""Dialogue tasks: the rules of each, written once. One folder a task."""

from dialgym.tasks.acts import Action, ActPolicy, ActSpeaker, PartyActs, RandomActs
from dialgym.tasks.base import (
    BatchOutcome,
    DialogueBatch,
    Facts,
    Features,
    Outcome,
    Parties,
    State,
    Task,
)

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
