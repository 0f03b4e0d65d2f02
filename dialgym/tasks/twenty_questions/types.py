"""The state of one dialogue of twenty questions, and the codes of what is said in it."""

from dataclasses import dataclass, field

import numpy as np

from dialgym.language import Utterance

NO, YES, UNCLEAR = 0, 1, 2
"""Codes of answers, and of what is true: UNCLEAR is what the table does not know."""
REPLIES = ("no", "yes", "I can't tell")
"""Texts of the answers."""
NOTHING = -1
"""Code of an utterance that is not understood; questions and guesses have those from 0 on."""


@dataclass(slots=True)
class TwentyQuestionsState:
    """A dialogue.

    `codes` are those of what was asked, `answers` those of the answers to it in turn; an answer to
    a negated question is turned round, so that it is about the question as the table has it. The
    rules judge a guess at once, whatever is then answered.
    """

    item: int  # the hidden thing's row in the table
    opening: list[Utterance]  # the answerer's private knowledge of it
    lines: list[Utterance] = field(default_factory=list)  # what both have heard
    codes: list[int] = field(default_factory=list)  # A questions, then K guesses, or NOTHING
    answers: list[int] = field(default_factory=list)  # NO, YES, UNCLEAR
    negated: bool = False  # whether the last question was
    waiting: bool = False  # for an answer
    over: bool = False
    weights: np.ndarray | None = None  # (K,) of all things after `counted` answers
    counted: int = 0

    @property
    def turns(self) -> int:
        """Utterances of the questioner so far."""
        return len(self.codes)

    def copy(self) -> "TwentyQuestionsState":
        """An independent copy; arrays are shared because nothing writes into them."""
        return TwentyQuestionsState(
            self.item,
            self.opening.copy(),
            self.lines.copy(),
            self.codes.copy(),
            self.answers.copy(),
            self.negated,
            self.waiting,
            self.over,
            self.weights,
            self.counted,
        )
