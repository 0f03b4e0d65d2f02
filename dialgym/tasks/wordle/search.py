"""The best that can be done in Wordle: exact search over the words that may be left."""

from functools import cache
from typing import Any

import numpy as np

from dialgym.tasks.wordle.patterns import SOLVED

KNOWN_RULES = ("honest", "fixed", False, "turn")
Left = tuple[int, ...]
"""Indices of the answers that may be the secret, in order."""


class WordSearch:
    """Expected returns of the best guesser, with an honest host.

    Of n words left, all equally likely, and t guesses, V(S, t) is the greatest Q over guesses g,
    Q = sum over colours c but the solving one of |S_c| / n (V(S_c, t - 1) - 1), S_c the words of S
    that give g the colours c; V(S, 0) = 0. A guess that tells nothing and is no word of S is never
    best. Guesses that divide a set alike are one.

    Args:
        table: (G, A) patterns of every guess against every answer.
        rules: `host`, `secret`, `hard_mode` and `invalid` of the task.
        sets: most sets of words that are looked into.

    Raises:
        ValueError: the best play under these rules is not known.
    """

    def __init__(self, table: np.ndarray, rules: tuple[Any, ...], sets: int = 20_000) -> None:
        if rules != KNOWN_RULES:
            raise ValueError(
                "value of Wordle: expected host='honest', secret='fixed', hard_mode=False and "
                f"invalid='turn', whose best play is known; got {rules}."
            )
        self.table, self.sets = table, sets
        self._values: dict[tuple[Left, int], float] = {}

    def value(self, left: np.ndarray, turns: int) -> float:
        """V of the answers `left` (n,) with so many guesses.

        Raises:
            ValueError: the search would be too long.
        """
        return self._solve(tuple(map(int, left)), turns)

    def _solve(self, left: Left, turns: int) -> float:
        if turns == 0 or len(left) == 1:
            return 0.0
        key = left, min(turns, len(left))  # who guesses them one by one needs no more
        if key not in self._values:
            self._values[key] = self._best(*key)
            if len(self._values) > self.sets:
                raise ValueError(
                    f"value of Wordle: more than {self.sets:,} sets of words would have to be "
                    "looked into; give it fewer words (`words`, `answers`) or guesses"
                )
        return self._values[key]

    def _best(self, left: Left, turns: int) -> float:
        best = -np.inf
        for solves, parts in self._divisions(left):
            bound = sum(len(part) * (_bound(len(part), turns - 1) - 1) for part in parts)
            if bound <= best * len(left) + 1e-12:
                continue
            total = sum(len(part) * (self._solve(part, turns - 1) - 1) for part in parts)
            best = max(best, total / len(left))
            if solves and len(parts) == len(left) - 1:
                break  # nothing tells more
        return float(best)

    def _divisions(self, left: Left) -> list[tuple[bool, tuple[Left, ...]]]:
        """Ways to divide the words by a guess, those of most parts first, without the solved."""
        words, found = np.array(left), dict[tuple[Left, ...], bool]()
        for row in self.table[:, words]:
            parts = tuple(
                tuple(words[row == colours].tolist())
                for colours in np.unique(row)
                if colours != SOLVED
            )
            if parts != (left,):
                found.setdefault(parts, bool((row == SOLVED).any()))
        ways = [(solves, parts) for parts, solves in found.items()]
        return sorted(ways, key=lambda way: (-len(way[1]), not way[0]))


@cache
def _bound(words: int, turns: int) -> float:
    """No less than V: one word is named, all others are told apart."""
    return 0.0 if turns == 0 else -(words - 1) / words
