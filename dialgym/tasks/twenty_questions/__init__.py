"""Twenty questions: find out what the other one thinks of, by questions that have yes or no."""

from dialgym.tasks.twenty_questions.task import TwentyQuestions
from dialgym.tasks.twenty_questions.types import TwentyQuestionsState

__all__ = ["TwentyQuestions", "TwentyQuestionsState"]
