"""The state of a game of Wordle."""

from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from dialgym.language import Utterance
from dialgym.tasks.wordle.patterns import INVALID, digits, letters


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

    def keeps_hints(self, words: np.ndarray, counted: bool = True) -> np.ndarray:
        """(k,) bool of words as letters (k, 5): green letters stay, yellow ones come again.

        A letter that was coloured twice comes twice, if the colours are `counted`: by ILQL's
        feedback one such letter of the secret colours both.
        """
        keeps = np.ones(len(words), bool)
        for guess, pattern in zip(self.guesses, self.patterns):
            if pattern == INVALID:
                continue
            colours = digits(pattern)
            said = letters([guess])[0]
            keeps &= (words == said)[:, colours == 2].all(1)
            for letter, count in Counter(said[colours > 0].tolist()).items():
                keeps &= (words == letter).sum(1) >= (count if counted else 1)
        return keeps
