"""Random utterances for the checks, and the error of a check that fails."""

import numpy as np

from dialgym.language import Constraint
from dialgym.rollouts.random_text import allowed_text, random_text
from dialgym.tasks import Task


def random_utterance(
    task: Task, party: str, constraint: Constraint, rng: np.random.Generator, wild: float = 0.3
) -> str:
    """A text for `party`: with probability `wild` any characters, else one that is allowed."""
    if rng.random() < wild:
        return random_text(task, party, rng)
    return allowed_text(task, party, constraint, rng)


def require(condition: object, task: Task, message: str) -> None:
    """Raise an AssertionError with the task's name unless the condition holds."""
    if not condition:
        raise AssertionError(f"{task.name}: {message}")
