"""Dialogue tasks: the rules of each, written once. One folder a task."""

from dialgym.tasks.acts import (
    Action,
    ActPolicy,
    ActSpeaker,
    BeliefStructure,
    PartyActs,
    RandomActs,
    SlotBelief,
)
from dialgym.tasks.base import Facts, Features, Outcome, Parties, State, Task
from dialgym.tasks.batch import BatchOutcome, DialogueBatch
from dialgym.tasks.hidden import Hidden, HiddenStateError, hide, reveal
from dialgym.tasks.posterior import (
    ExactPosterior,
    ExactValue,
    NamesTruth,
    entropy,
    information_gain,
)

__all__ = [
    "ActPolicy",
    "ActSpeaker",
    "Action",
    "BatchOutcome",
    "BeliefStructure",
    "DialogueBatch",
    "ExactPosterior",
    "ExactValue",
    "Facts",
    "Features",
    "Hidden",
    "HiddenStateError",
    "NamesTruth",
    "Outcome",
    "Parties",
    "PartyActs",
    "RandomActs",
    "SlotBelief",
    "State",
    "Task",
    "entropy",
    "hide",
    "information_gain",
    "reveal",
]
