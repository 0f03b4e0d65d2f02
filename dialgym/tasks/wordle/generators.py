"""Sets of games for offline RL: branches of an expert's games after ILQL's, and games of people.

`-p` and `policy_kwargs` set the arguments of a generator. In ILQL a branch was meant to go on from
a state of the expert's game, but began a new game instead, since the state was never loaded; here
it does go on.
"""

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any

import numpy as np

from dialgym.io.cache import PerTask
from dialgym.tasks.base import SYSTEM, USER
from dialgym.tasks.generators import Branch, Log, ScriptedDialogue, Tree, by_halves
from dialgym.tasks.wordle.game_pickle import StoredGame, read_game_pickle
from dialgym.tasks.wordle.patterns import PATTERNS
from dialgym.tasks.wordle.policies import (
    Expert,
    OptimalWordle,
    RandomWord,
    Repeat,
    WordMixture,
    Wrong,
)
from dialgym.tasks.wordle.posts import TURNS, Post, read_posts
from dialgym.tasks.wordle.task import Wordle
from dialgym.tasks.wordle.words import Words


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


halves = by_halves(OptimalWordle, RandomWord)


class HumanGames:
    """Games with the colours of real ones: a post, a secret, and for each row of squares a word.

    The secret is drawn from the answers for which every row has a word, each word from all that
    give the row. Posts for which there is no such answer are never drawn.

    Args:
        tweets: a file with a post in each row (CSV, JSONL ...), such as ``Wordle 210 4/6`` and four
            lines of five squares. A post whose squares do not agree with its score is passed over.
            Or ILQL's JSON of such games, whose ``games`` are pairs of a word and rows of colours.
        column: the column of the posts.
        true_word: whether the secret is the word of the day: the one in the JSON; of posts that of
            the numbers 210 to 249, from which ILQL's are. Or the words by number, a mapping.
        games: numbers of the games that are taken, from 0 in the order of the file; None for all.

    Raises:
        ValueError: the file cannot be read, or holds no such games.
    """

    def __init__(
        self,
        tweets: str | PathLike[str],
        column: str = "tweet_text",
        true_word: bool | Mapping[Any, str] = False,
        games: Sequence[int] | None = None,
    ) -> None:
        words = true_word if isinstance(true_word, Mapping) else None
        self.posts = read_posts(tweets, column, words, games)
        self.true_word = bool(true_word)
        self._fitting = PerTask()

    def script(self, task: Wordle, rng: np.random.Generator) -> ScriptedDialogue:
        """One game.

        Raises:
            ValueError: the game's secret changes, or its words fit no post.
        """
        possible, usable = self._fit(task)
        post = self.posts[int(rng.choice(usable))]
        secret = int(rng.choice(np.flatnonzero(self._secrets(task, possible, post))))
        words = [np.flatnonzero(task.table[:, secret] == pattern) for pattern in post.patterns]
        texts = [task.guesses[int(rng.choice(fits))] for fits in words]
        return ScriptedDialogue({"word": task.answers[secret]}, texts)

    def _fit(self, task: Wordle) -> tuple[np.ndarray, np.ndarray]:
        """Which pattern some word gives for which answer (243, A), and which posts fit (n,)."""
        if task not in self._fitting:
            check_fixed(task, "human games")
            possible = np.zeros((PATTERNS, len(task.answers)), bool)
            possible[task.table, np.arange(len(task.answers))] = True
            fits = [self._secrets(task, possible, post).any() for post in self.posts]
            if not any(fits):
                words = "the words of their days, as far as known, and " if self.true_word else ""
                raise ValueError(
                    f"human games: none of the {len(self.posts)} posts fits {words}the words of "
                    "this Wordle. Give longer lists of guesses or answers."
                )
            self._fitting[task] = possible, np.flatnonzero(fits)
        found: tuple[np.ndarray, np.ndarray] = self._fitting[task]
        return found

    def _secrets(self, task: Wordle, possible: np.ndarray, post: Post) -> np.ndarray:
        """(A,) bool: the answers, of the split, for which every row of a post has a word."""
        found: np.ndarray = np.logical_and.reduce(possible[list(post.patterns)])
        found &= np.isin(np.arange(len(found)), task.drawn.rows)
        if not self.true_word:
            return found
        word = np.zeros(len(found), bool)
        if (place := task.answer_index.get(post.word or "")) is not None:
            word[place] = True
        return found & word


class PickledGames:
    """The games that ILQL's scripts have stored, held again: `Logs` of a pickle.

    Nothing in the file is run: guesses and states are read, and any other name in it is an error.
    The secret is not stored; it is drawn, the same each time, from the answers that agree with the
    game's last state. Of a task with a `split`, games that agree with none of its answers are left
    out. By ``feedback="ilql"`` the colours are then those of the stored game.

    Args:
        path: the file, with ``state_actions``.

    Raises:
        ValueError: there is no such file, or it holds anything but such games.
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        self.games = read_game_pickle(path)
        self._fitting = PerTask()

    def count(self, task: Wordle) -> int:
        """See `dialgym.tasks.generators.Logs`."""
        return len(self._numbers(task))

    def _numbers(self, task: Wordle) -> Sequence[int]:
        """The games of the task's split."""
        if task.drawn.split is None:
            return range(len(self.games))
        if task not in self._fitting:
            found = [i for i, game in enumerate(self.games) if len(_secrets_of(task, game))]
            if not found:
                raise ValueError(
                    f"stored games: none agrees with an answer{task.drawn}. Take another split."
                )
            self._fitting[task] = found
        numbers: Sequence[int] = self._fitting[task]
        return numbers

    def log(self, task: Wordle, number: int) -> Log:
        """See `dialgym.tasks.generators.Logs`.

        Raises:
            ValueError: the secret changes, or no answer agrees with the game.
        """
        check_fixed(task, "stored games")
        number = self._numbers(task)[number]
        game = self.games[number]
        allowed = _secrets_of(task, game)
        if not len(allowed):
            raise ValueError(
                f"stored games: no answer of this Wordle agrees with game {number}, "
                f"{' '.join(game.guesses)}. Give the words that it was played with, answers=PATH."
            )
        word = task.answers[int(np.random.default_rng(number).choice(allowed))]
        turns = [(USER, word), *((SYSTEM, guess) for guess in game.guesses)]
        return Log({"word": word}, turns, game.kind)


def _secrets_of(task: Wordle, game: StoredGame) -> np.ndarray:
    """(n,) places of the answers, of the split, that agree with the last state of a game."""
    rows = task.drawn.rows
    found: np.ndarray = rows[game.allows(task.answer_letters[rows])]
    return found


def check_fixed(task: Wordle, what: str) -> None:
    """Raise a ValueError where a game of six guesses about one secret cannot be held."""
    if task.secret_mode != "fixed" or task.host != "honest" or task.turns != TURNS:
        raise ValueError(
            f"{what}: expected a Wordle with secret='fixed', host='honest' and turns=6; "
            f"got secret={task.secret_mode!r}, host={task.host!r}, turns={task.turns!r}. "
            "Set them (env_kwargs, --set)."
        )
