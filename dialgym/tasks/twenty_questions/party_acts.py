"""Acts of both parties of twenty questions: questions and guesses, and the three answers."""

from typing import Any

import numpy as np

from dialgym.tasks.acts import PartyActs, RandomActs
from dialgym.tasks.twenty_questions import policies
from dialgym.tasks.twenty_questions.task import TwentyQuestions
from dialgym.tasks.twenty_questions.types import (
    NOTHING,
    REPLIES,
    UNCLEAR,
    TwentyQuestionsState,
)

Generator = np.random.Generator
_TELLS = 1e-9


class QuestionerActs(PartyActs):
    """The A questions and K guesses of a table.

    Observation, of A + K + 1 entries from 0 to 1: the probability of yes to each question, that of
    each thing, and the share of the turns that are over. The mask allows what can tell something:
    questions that gain information, and things that may still be it.

    Args:
        task: the rules.
    """

    policies = {  # noqa: RUF012
        "greedy": policies.GreedyQuestioner,
        "human-like": policies.HumanLikeQuestioner,
        "random": RandomActs,
    }

    def __init__(self, task: TwentyQuestions) -> None:
        self.task, self.names = task, task.said
        self.size = len(task.said) + 1

    def observe(self, state: TwentyQuestionsState) -> np.ndarray:
        belief = self.task.posterior(state)
        seen = np.empty(self.size, np.float32)
        seen[: self.task.questions] = self.task.beliefs.yes(belief)
        seen[self.task.questions : -1] = belief
        seen[-1] = state.turns / self.task.turns
        return np.clip(seen, 0.0, 1.0)

    def mask(self, state: TwentyQuestionsState) -> np.ndarray:
        belief = self.task.posterior(state)
        allowed: np.ndarray = self.task.beliefs.gains(belief) > _TELLS
        allowed[self.task.questions :] = belief > 0
        return allowed

    def text(self, state: TwentyQuestionsState, action: Any, rng: Generator) -> str:
        return self.task.said[int(action)]

    def read(self, state: TwentyQuestionsState, text: str) -> int:
        """The question or guess that a text is taken for; the first one if it is not understood."""
        return max(self.task.understanding.read(text)[0], 0)


class AnswererActs(PartyActs):
    """``no``, ``yes`` and ``I can't tell``.

    Observation, of 6 entries: the truthful answer to the last utterance, one-hot; whether that was
    a guess, and whether it was not understood; the share of the turns that are over. The first
    five are 0 where nothing waits for an answer.

    Args:
        task: the rules.
    """

    names = REPLIES
    size = 6
    policies = {"answerer": policies.TableAnswerer, "random": RandomActs}  # noqa: RUF012

    def __init__(self, task: TwentyQuestions) -> None:
        self.task = task

    def observe(self, state: TwentyQuestionsState) -> np.ndarray:
        seen = np.zeros(self.size, np.float32)
        if state.waiting:
            seen[self.task.true_answer(state)] = 1.0
            seen[UNCLEAR + 1] = state.codes[-1] >= self.task.questions
            seen[UNCLEAR + 2] = state.codes[-1] == NOTHING
        seen[-1] = state.turns / self.task.turns
        return seen

    def text(self, state: TwentyQuestionsState, action: Any, rng: Generator) -> str:
        return REPLIES[int(action)]
