"""Sets of games for offline RL: branches of an expert's games after ILQL's, and games of people.

`-p` and `policy_kwargs` set the arguments of a generator. In ILQL a branch was meant to go on from
a state of the expert's game, but began a new game instead, since the state was never loaded; here
it does go on.
"""

import re
from collections.abc import Iterator, Sequence
from os import PathLike
from pathlib import Path

import numpy as np

from dialgym.io.cache import PerTask
from dialgym.io.tables import read_rows
from dialgym.tasks.generators import Branch, ScriptedDialogue, Tree
from dialgym.tasks.wordle.patterns import LENGTH, PATTERNS, SOLVED
from dialgym.tasks.wordle.policies import Expert, Repeat, WordMixture, Wrong
from dialgym.tasks.wordle.task import Wordle
from dialgym.tasks.wordle.words import Words

COLOURS = {"⬛": 0, "⬜": 0, "🟨": 1, "🟦": 1, "🟩": 2, "🟧": 2}
"""Squares and their digits; blue and orange are those of the high-contrast mode."""
_ROW = re.compile(f"[{''.join(COLOURS)}]{{{LENGTH}}}")
_SCORE = re.compile(r"Wordle\s+[\d,.]+\s+([1-6X])/6")
TURNS = 6


def branching(games: int = 1, start_words: Words | None = None) -> Tree:
    """From every open state of an expert's game, `games` games of guesses that cannot be right.

    Args:
        games: games from each state.
        start_words: what the expert opens with, see `StartWords`.
    """
    return Tree(Expert(start_words), (Branch("wrong", Wrong(), games),))


def adversarial(
    repeats: int = 5,
    suboptimal: int = 5,
    smart: float = 0.5,
    after: int = 2,
    start_words: Words | None = None,
) -> Tree:
    """Games in which good openings come to nothing.

    An expert's game; from its third state, `repeats` games that say one of its first two words
    again and again; and `suboptimal` games with the same secret of which each guess is consistent
    with probability `smart`. The words of the expert are worth more than the returns that follow
    them in the data: who learns from returns alone prefers the suboptimal games.

    Args:
        repeats: games for each expert's game of more than `after` guesses.
        suboptimal: games for each expert's game.
        smart: see `WordMixture`.
        after: words of the expert before it is repeated. Games that are over by then have no such
            branches: where they are many, as in a list of a few words, those that have seem
            unlucky, and 1 is truer.
        start_words: what the expert opens with, see `StartWords`.
    """
    return Tree(
        Expert(start_words),
        (
            Branch("repeat", Repeat(first_n=2), repeats, after=after),
            Branch("suboptimal", WordMixture(smart), suboptimal, after=0),
        ),
    )


class HumanGames:
    """Games with the colours of real ones: a post, a secret, and for each row of squares a word.

    The secret is drawn from the answers for which every row has a word, each word from all that
    give the row. Posts for which there is no such answer are never drawn.

    Args:
        tweets: a file with a post in each row (CSV, JSONL ...), such as ``Wordle 210 4/6`` and four
            lines of five squares. A post whose squares do not agree with its score is passed over.
        column: the column of the posts.

    Raises:
        ValueError: the file cannot be read, or holds no posts.
    """

    def __init__(self, tweets: str | PathLike[str], column: str = "tweet_text") -> None:
        self.games = read_tweets(tweets, column)
        self._fitting = PerTask()

    def script(self, task: Wordle, rng: np.random.Generator) -> ScriptedDialogue:
        """One game.

        Raises:
            ValueError: the game's secret changes, or its words fit no post.
        """
        possible, usable = self._fit(task)
        game = self.games[int(rng.choice(usable))]
        secret = int(rng.choice(np.flatnonzero(possible[list(game)].all(0))))
        words = [np.flatnonzero(task.table[:, secret] == pattern) for pattern in game]
        texts = [task.guesses[int(rng.choice(fits))] for fits in words]
        return ScriptedDialogue({"word": task.answers[secret]}, texts)

    def _fit(self, task: Wordle) -> tuple[np.ndarray, np.ndarray]:
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

    def _check(self, task: Wordle) -> None:
        if task.secret_mode != "fixed" or task.host != "honest" or task.turns != TURNS:
            raise ValueError(
                "human games: expected a Wordle with secret='fixed', host='honest' and turns=6; "
                f"got secret={task.secret_mode!r}, host={task.host!r}, turns={task.turns!r}. "
                "Set them (env_kwargs, --set)."
            )


def read_tweets(path: str | PathLike[str], column: str = "tweet_text") -> list[tuple[int, ...]]:
    """The patterns of each game in a file of posts; see `HumanGames`.

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
        rows = list(read_rows(path))
    except OSError as error:
        raise ValueError(
            f"human games: expected a file of rows at {str(path)!r}; {error}. Check the path."
        ) from error
    for place, row in rows:
        if column not in row:
            raise ValueError(
                f"human games: {place} has no column {column!r}; it has {', '.join(row)}. "
                "Give the name as column=."
            )
        yield row[column] or ""
