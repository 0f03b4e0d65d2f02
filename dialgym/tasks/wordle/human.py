"""Games of people, from the coloured squares that they post."""

import csv
import re
from collections.abc import Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dialgym.tasks.generators import Script
from dialgym.tasks.memory import PerTask
from dialgym.tasks.wordle.patterns import LENGTH, PATTERNS, SOLVED

if TYPE_CHECKING:
    from dialgym.tasks.wordle.task import Wordle

COLOURS = {"⬛": 0, "⬜": 0, "🟨": 1, "🟦": 1, "🟩": 2, "🟧": 2}
"""Squares and their digits; blue and orange are those of the high-contrast mode."""
_ROW = re.compile(f"[{''.join(COLOURS)}]{{{LENGTH}}}")
_SCORE = re.compile(r"Wordle\s+[\d,.]+\s+([1-6X])/6")
TURNS = 6


class HumanGames:
    """Games with the colours of real ones: a post, a secret, and for each row of squares a word.

    The secret is drawn from the answers for which every row has a word, each word from all that
    give the row. Posts for which there is no such answer are never drawn.

    Args:
        tweets: a CSV file with a post in each row, such as ``Wordle 210 4/6`` and four lines of
            five squares. A post whose squares do not agree with its score is passed over.
        column: the column of the posts.

    Raises:
        ValueError: the file cannot be read, or holds no posts.
    """

    def __init__(self, tweets: str | PathLike[str], column: str = "tweet_text") -> None:
        self.games = read_tweets(tweets, column)
        self._fitting = PerTask()

    def script(self, task: "Wordle", rng: np.random.Generator) -> Script:
        """One game.

        Raises:
            ValueError: the game's secret changes, or its words fit no post.
        """
        possible, usable = self._fit(task)
        game = self.games[int(rng.choice(usable))]
        secret = int(rng.choice(np.flatnonzero(possible[list(game)].all(0))))
        words = [np.flatnonzero(task.table[:, secret] == pattern) for pattern in game]
        texts = [task.guesses[int(rng.choice(fits))] for fits in words]
        return Script({"word": task.answers[secret]}, texts)

    def _fit(self, task: "Wordle") -> tuple[np.ndarray, np.ndarray]:
        """Which pattern some word gives for which answer (243, A), and which games fit (n,)."""
        if task not in self._fitting:
            self._check(task)
            possible = np.zeros((PATTERNS, len(task.answers)), bool)
            possible[task.table, np.arange(len(task.answers))] = True
            fits = [possible[list(game)].all(0).any() for game in self.games]
            if not any(fits):
                raise ValueError(
                    f"human games: none of the {len(self.games)} posts fits the words of this "
                    "Wordle. Give longer lists of guesses or answers."
                )
            self._fitting[task] = possible, np.flatnonzero(fits)
        found: tuple[np.ndarray, np.ndarray] = self._fitting[task]
        return found

    def _check(self, task: "Wordle") -> None:
        if task.secret_mode != "fixed" or task.host != "honest" or task.turns != TURNS:
            raise ValueError(
                "human games: expected a Wordle with secret='fixed', host='honest' and turns=6; "
                f"got secret={task.secret_mode!r}, host={task.host!r}, turns={task.turns!r}. "
                "Set them (env_kwargs, --set)."
            )


def read_tweets(path: str | PathLike[str], column: str = "tweet_text") -> list[tuple[int, ...]]:
    """The patterns of each game in a CSV file of posts; see `HumanGames`.

    Raises:
        ValueError: the file cannot be read, has no such column, or holds no games.
    """
    games = [game for text in _column(Path(path), column) if (game := read_squares(text))]
    if not games:
        raise ValueError(
            f"human games: no game of Wordle in the column {column!r} of {str(path)!r}. Expected "
            "posts such as 'Wordle 210 4/6' with a line of five squares for each guess."
        )
    return games


def read_squares(text: str) -> tuple[int, ...] | None:
    """The patterns of the game in a post; None where squares and score do not agree."""
    rows = [_pattern(row) for row in _ROW.findall(text.replace("\N{VARIATION SELECTOR-16}", ""))]
    score = _SCORE.search(text)
    if score is None or not rows or SOLVED in rows[:-1]:
        return None
    solved = rows[-1] == SOLVED
    expected = TURNS if score[1] == "X" else int(score[1])
    return tuple(rows) if len(rows) == expected and solved == (score[1] != "X") else None


def _pattern(row: Sequence[str]) -> int:
    number = 0
    for square in row:
        number = 3 * number + COLOURS[square]
    return number


def _column(path: Path, column: str) -> Iterator[str]:
    try:
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file)
            names = reader.fieldnames or []
            if column not in names:
                raise ValueError(
                    f"human games: {str(path)!r} has no column {column!r}; it has "
                    f"{', '.join(names) or 'none'}. Give the name as column=."
                )
            for row in reader:
                yield row[column] or ""
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ValueError(
            f"human games: expected a CSV file in UTF-8 at {str(path)!r}; {error}. Check the path."
        ) from error
