"""The best that can be done in twenty questions: exact search, and a bound beyond its reach."""

from collections.abc import Iterator, Sequence
from functools import cache

import numpy as np

from dialgym.tasks.twenty_questions.types import NO, UNCLEAR, YES

Parts = tuple[int, ...]
"""Sets of things as bits of a number: those that are left after each answer to a question."""


class Search:
    """Expected returns of the best questioner, all answers being true.

    What is known is the set S of things that are left, n of them, all equally likely, and the turns
    t that are. The value of the best is V(S, t) = max over questions and guesses of Q, where a
    guess of thing i has Q = (n - 1) / n (V(S - i, t - 1) - 1), and a question that leaves the parts
    S_1, S_2 ... has Q = -1 + sum |S_j| / n V(S_j, t - 1); V(S, 0) = 0. Choices are looked into in
    the order of an upper bound of Q, by `perfect`, until none can be better than what is found.

    Args:
        truth: (K, A) int8 of NO, YES, UNCLEAR.
        sets: most sets that are looked into.
    """

    def __init__(self, truth: np.ndarray, sets: int = 50_000) -> None:
        self.questions, self.sets = truth.shape[1], sets
        self._unclear = _bits(np.flatnonzero((truth == UNCLEAR).any(1)))
        self._masks = [
            tuple(_bits(np.flatnonzero(column == value)) for value in (NO, YES, UNCLEAR))
            for column in truth.T
        ]
        self._values: dict[tuple[int, int], tuple[float, int]] = {}

    def value(self, left: Sequence[int], turns: int) -> float:
        """V of the things `left`.

        Raises:
            ValueError: the search would be too long.
        """
        return self._solve(_bits(left), turns)[0]

    def best(self, left: Sequence[int], turns: int) -> int:
        """The code of the best question or guess."""
        return self._solve(_bits(left), turns)[1]

    def _solve(self, left: int, turns: int) -> tuple[float, int]:
        """V of a set, and the code of what is best to say."""
        things = left.bit_count()
        turns = min(turns, things)  # who only guesses needs no more
        if turns == 0:
            return 0.0, self.questions
        if things == 1:
            return 0.0, self.questions + left.bit_length() - 1
        known = self._values.get((left, turns))
        if known is None:
            known = self._values[left, turns] = self._choose(left, turns)
            self._check_length()
        return known

    def _choose(self, left: int, turns: int) -> tuple[float, int]:
        things = left.bit_count()
        bounded = sorted(
            (
                (self._expected(parts, code, things, turns, bound=True), code, parts)
                for code, parts in self._choices(left)
            ),
            key=lambda choice: (-choice[0], -choice[1]),  # of equals the guess
        )
        best, chosen = -np.inf, self.questions
        for bound, code, parts in bounded:
            if bound <= best + 1e-12:
                break
            value = self._expected(parts, code, things, turns)
            if value > best + 1e-12:
                best, chosen = value, code
        return best, chosen

    def _expected(
        self, parts: Parts, code: int, things: int, turns: int, bound: bool = False
    ) -> float:
        """Q of a question or a guess, or an upper bound of it."""
        total = 0.0
        for part in parts:
            size = part.bit_count()
            if bound:
                ahead = perfect(size, turns - 1, 3 if part & self._unclear else 2)
            else:
                ahead = self._solve(part, turns - 1)[0]
            total += size / things * (ahead - 1.0)
        return total

    def _choices(self, left: int) -> Iterator[tuple[int, Parts]]:
        """Codes and what they leave: each guess, and one of the questions that split alike.

        The part of a guess that is right is left out, as nothing is to be paid for it.
        """
        seen = set()
        for code, masks in enumerate(self._masks):
            parts = tuple(part for mask in masks if (part := left & mask))
            if len(parts) > 1 and (key := frozenset(parts)) not in seen:
                seen.add(key)
                yield code, parts
        rest = left
        while rest:
            thing = rest & -rest
            rest ^= thing
            yield self.questions + thing.bit_length() - 1, (left ^ thing,)

    def _check_length(self) -> None:
        if len(self._values) > self.sets:
            raise ValueError(
                f"optimal: more than {self.sets:,} sets of things would have to be looked into. "
                "Keep fewer items or questions, give it more sets=, or use the policy 'greedy'."
            )


@cache
def perfect(things: int, turns: int, answers: int = 2) -> float:
    """The best return where some question splits any set in any way: no table allows more.

    By dynamic programming over the number of things; a question has so many `answers`.
    """
    if turns <= 0 or things <= 1:
        return 0.0
    guess = (things - 1) / things * (perfect(things - 1, turns - 1, answers) - 1.0)
    return max(guess, _divided(things, turns - 1, answers, answers) / things - 1.0)


@cache
def _divided(things: int, turns: int, parts: int, answers: int) -> float:
    """The best sum of size times value over at most so many parts of a set."""
    if parts == 1:
        return things * perfect(things, turns, answers)
    smallest = range(things // parts + 1)
    return max(
        n * perfect(n, turns, answers) + _divided(things - n, turns, parts - 1, answers)
        for n in smallest
    )


def _bits(places: Sequence[int] | np.ndarray) -> int:
    return sum(1 << int(place) for place in places)
