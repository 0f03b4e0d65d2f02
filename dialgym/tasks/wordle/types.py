"""The state of a game of Wordle."""

from dataclasses import dataclass, field

import numpy as np

from dialgym.language import Utterance

INVALID = -1
"""In place of a pattern: the guess was not a word."""


@dataclass(slots=True)
class WordleState:
    """A game. `guesses` and `patterns` run in parallel, rejected guesses included."""

    secret: int  # index into the answers
    settled: bool  # the host has chosen the secret
    opening: list[Utterance] = field(default_factory=list)  # the host's private choice
    lines: list[Utterance] = field(default_factory=list)  # what both have heard
    guesses: list[str] = field(default_factory=list)
    patterns: list[int] = field(default_factory=list)  # 0-242, or INVALID
    turns: int = 0
    rejected: int = 0
    over: bool = False
    consistent: np.ndarray | None = None  # (n,) indices of answers after `filtered` guesses
    filtered: int = 0

    def copy(self) -> "WordleState":
        """An independent copy; arrays are shared because nothing writes into them."""
        return WordleState(
            self.secret,
            self.settled,
            self.opening.copy(),
            self.lines.copy(),
            self.guesses.copy(),
            self.patterns.copy(),
            self.turns,
            self.rejected,
            self.over,
            self.consistent,
            self.filtered,
        )
