"""Wordle in batches: the rules of `task.py` as table look-ups."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dialgym.language import Constraint, Utterance
from dialgym.tasks.base import SYSTEM, USER
from dialgym.tasks.batch import BatchOutcome, RowStates, silence
from dialgym.tasks.wordle.patterns import INVALID, LENGTH, REPLIES, SOLVED, colour
from dialgym.tasks.wordle.task import Wordle
from dialgym.tasks.wordle.types import WordleState

_PLACE = 26 ** np.arange(LENGTH - 1, -1, -1)
_ANSWERS = np.array([*REPLIES, "invalid"])  # indexed by pattern; INVALID = -1 is the last


class WordleBatch:
    """`size` honest games with fixed secrets; equal to as many `WordleState`s, game by game."""

    def __init__(self, task: Wordle, size: int) -> None:
        self.task = task
        self.secret = np.zeros(size, np.int64)
        self.turns = np.zeros(size, np.int64)
        self.rejected = np.zeros(size, np.int64)
        limit = task.facts.turn_limit
        self.guesses = np.zeros((size, limit), f"<U{LENGTH + 1}")
        self.patterns = np.zeros((size, limit), np.int16)
        self._possible: np.ndarray | None = None  # (size, A) bool, after `_filtered` guesses
        self._filtered = np.zeros(size, np.int64)
        codes = _codes(task.guess_texts)
        self._codes, self._rows = np.sort(codes), np.argsort(codes)

    def draw(
        self, rows: np.ndarray, rngs: Sequence[np.random.Generator], options: Mapping[str, Any]
    ) -> list[int]:
        return [self.task.draw_secret(rngs[row], options) for row in rows.tolist()]

    def begin(
        self, rows: np.ndarray, drawn: list[int], rngs: Sequence[np.random.Generator]
    ) -> BatchOutcome:
        self.secret[rows] = drawn
        self.turns[rows] = self.rejected[rows] = self._filtered[rows] = 0
        if self._possible is not None:
            self._possible[rows] = True
        return silence(len(rows))

    def say(
        self, rows: np.ndarray, texts: np.ndarray, rngs: Sequence[np.random.Generator]
    ) -> BatchOutcome:
        pattern = self._answer(rows, texts)
        said = self.turn(rows)
        self.guesses[rows, said] = texts
        self.patterns[rows, said] = pattern
        free = (pattern == INVALID) & (self.task.invalid == "reject")
        self.turns[rows] += ~free
        self.rejected[rows] += free
        return self._judge(rows, pattern)

    def possible(self, rows: np.ndarray) -> np.ndarray:
        """(k, A) bool: the answers that agree with all colours so far; see `Wordle.candidates`."""
        if self._possible is None:
            self._possible = np.ones((len(self.secret), len(self.task.answers)), bool)
        said = self.turn(rows)
        while (behind := self._filtered[rows] < said).any():
            late = rows[behind]
            at = self._filtered[late]
            self._filter(late, self.guesses[late, at], self.patterns[late, at])
            self._filtered[late] += 1
        kept: np.ndarray = self._possible[rows]
        return kept

    def _filter(self, rows: np.ndarray, texts: np.ndarray, patterns: np.ndarray) -> None:
        assert self._possible is not None
        listed, index, letters = self._look_up(texts)
        valid = patterns != INVALID
        known = np.flatnonzero(listed & valid)
        agree = self.task.table[index[known]] == patterns[known, None]
        self._possible[rows[known]] &= agree
        for i in np.flatnonzero(valid & ~listed).tolist():
            guess = letters[i].astype(np.uint8)
            row = colour(guess, self.task.answer_letters, self.task.feedback)
            self._possible[rows[i]] &= row == patterns[i]

    def _look_up(self, texts: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Flags of texts in the list (k,), the rows of those, and all letters (k, 5)."""
        letters, legal = _letters(texts)
        codes = letters @ _PLACE
        place = np.minimum(np.searchsorted(self._codes, codes), len(self._codes) - 1)
        return legal & (self._codes[place] == codes), self._rows[place], letters

    def _answer(self, rows: np.ndarray, texts: np.ndarray) -> np.ndarray:
        listed, index, letters = self._look_up(texts)
        pattern = np.full(len(rows), INVALID, np.int16)
        pattern[listed] = self.task.table[index[listed], self.secret[rows[listed]]]
        if self.task.any_guess:
            other = _letters(texts)[1] & ~listed
            secrets = self.task.answer_letters[self.secret[rows[other]]]
            guesses = letters[other].astype(np.uint8)
            pattern[other] = colour(guesses, secrets, self.task.feedback)
        return pattern

    def _judge(self, rows: np.ndarray, pattern: np.ndarray) -> BatchOutcome:
        success = pattern == SOLVED
        lost = (self.turns[rows] == self.task.turns) & ~success
        rejected = (self.rejected[rows] == self.task.turns) & ~success & ~lost
        cost = np.where(success, 0.0, -self.task.cost.amount)
        return BatchOutcome(
            cost,
            success | lost,
            rejected,
            success,
            {self.task.cost.name: cost},
            _ANSWERS[pattern],
            np.ones(len(rows), np.int64),
            np.arange(len(rows)),
        )

    def states(self, rows: np.ndarray) -> "Games":
        """The games of the rows."""
        return Games(self, rows)

    def state(self, row: int) -> WordleState:
        """The game of a row, made again."""
        turns, rejected = int(self.turns[row]), int(self.rejected[row])
        said = turns + rejected
        patterns = self.patterns[row, :said].tolist()
        return WordleState(
            int(self.secret[row]), settled=True, lines=self.transcript(row),
            guesses=self.guesses[row, :said].tolist(), patterns=patterns, turns=turns,
            rejected=rejected, over=self.over(turns, rejected, patterns),
        )  # fmt: skip

    def restore(self, row: int, state: WordleState, turn: int) -> None:
        """Let a row go on from a game."""
        self.secret[row], self.turns[row] = state.secret, state.turns
        self.rejected[row], self._filtered[row] = state.rejected, 0
        self.guesses[row, :turn], self.patterns[row, :turn] = state.guesses, state.patterns
        if self._possible is not None:
            self._possible[row] = True

    def over(self, turns: int, rejected: int, patterns: Sequence[int]) -> bool:
        """True where a game of so many turns and rejected guesses has ended."""
        full = self.task.turns in (turns, rejected)
        return full or (bool(patterns) and patterns[-1] == SOLVED)

    def transcript(self, row: int) -> list[Utterance]:
        said = int(self.turns[row] + self.rejected[row])
        lines: list[Utterance] = []
        for guess, pattern in zip(self.guesses[row, :said], self.patterns[row, :said]):
            lines.append(Utterance(SYSTEM, str(guess)))
            lines.append(Utterance(USER, str(_ANSWERS[pattern])))
        return lines

    def constraint(self, row: int) -> Constraint:
        constraint = self.task.static_constraint(SYSTEM)
        assert constraint is not None, "a batched game has no hard mode"
        return constraint

    def turn(self, rows: np.ndarray) -> np.ndarray:
        return self.turns[rows] + self.rejected[rows]


class Games(RowStates):
    """Rows of a batch, whose possible answers need no states."""

    def possible(self, places: np.ndarray) -> np.ndarray:
        """(k, A) bool: see `WordleBatch.possible`."""
        possible: np.ndarray = self._batch.possible(self._rows[places])
        return possible


def _letters(texts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The first five letters (k, 5) int64 of each text from a = 0, and whether it is just them."""
    wide = np.ascontiguousarray(texts, f"<U{LENGTH + 1}").view(np.uint32).reshape(len(texts), -1)
    letters = wide[:, :LENGTH] - np.uint32(ord("a"))
    legal = (letters < 26).all(1) & (wide[:, LENGTH] == 0)
    return np.where(legal[:, None], letters, 0).astype(np.int64), legal


def _codes(words: np.ndarray) -> np.ndarray:
    return _letters(words)[0] @ _PLACE
