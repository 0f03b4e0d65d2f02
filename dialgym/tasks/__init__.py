"""Dialogue tasks: the rules of each, written once. One folder a task."""

from dialgym.tasks.base import (
    BatchOutcome,
    DialogueBatch,
    Facts,
    Outcome,
    Parties,
    State,
    Task,
)

__all__ = ["BatchOutcome", "DialogueBatch", "Facts", "Outcome", "Parties", "State", "Task"]
