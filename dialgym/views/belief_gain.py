"""What a turn has told about the hidden thing, in bits, as a reward beside the task's."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from dialgym.errors import finite_number
from dialgym.tasks import Task
from dialgym.tasks.posterior import ExactPosterior


class BeliefGain:
    """By how many bits the posterior probability of the truth has risen, for N dialogues.

    The gain of a turn is weight * (log2 p(truth) after it - log2 p(truth) before it); those of a
    dialogue add up to weight * log2(p(truth) at the end * k) where all k things were as likely at
    first. It is negative where an answer misleads. After Wang et al. (2025), arXiv 2510.14967, who
    reward a turn by how much a model's own probability of the right answer has risen.

    Args:
        task: one that knows its posterior, `dialgym.tasks.ExactPosterior`.
        num_envs: N.
        weight: reward of a bit.

    Raises:
        ValueError: the task has no exact posterior, or the weight is no finite number.
    """

    def __init__(self, task: Task, num_envs: int, weight: float) -> None:
        if not isinstance(task, ExactPosterior):
            raise ValueError(
                f"belief_gain of {task.name}: expected a task with an exact posterior "
                "(hypotheses, posterior, truth, suppose), such as TwentyQuestions; "
                f"{task.name} has none. Leave belief_gain at 0."
            )
        self.task: ExactPosterior = task
        self.weight = finite_number(f"belief_gain of {task.name}", weight)
        self._bits = np.zeros(num_envs)  # log2 of the belief in the truth

    def look(self, rows: np.ndarray, states: Sequence[Any]) -> np.ndarray:
        """(k,) rewards of what rows (k,) have learned since they were looked at last."""
        beliefs = np.array([self.task.posterior(s)[self.task.truth(s)] for s in states])
        bits = np.log2(np.maximum(beliefs, np.finfo(np.float64).tiny))
        gain: np.ndarray = self.weight * (bits - self._bits[rows])
        self._bits[rows] = bits
        return gain
