"""Games of Wordle as people post them: rows of squares, or ILQL's JSON of such games."""

import re
from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from dialgym.errors import whole_number
from dialgym.io.archives import parts_of
from dialgym.io.files import parse_json
from dialgym.io.tables import read_rows
from dialgym.tasks.wordle.patterns import LENGTH, SOLVED
from dialgym.tasks.wordle.words import is_word

COLOURS = {"⬛": 0, "⬜": 0, "🟨": 1, "🟦": 1, "🟩": 2, "🟧": 2}
"""Squares and their digits; blue and orange are those of the high-contrast mode."""
NAMES = {"<b>": "⬛", "<y>": "🟨", "<g>": "🟩"}
"""Squares in ILQL's JSON."""
FIRST_DAY = 210
_WORDS = """
panic solar shire proxy point robot prick wince crimp knoll sugar whack mount perky could wrung
light those moist shard pleat aloft skill elder frame humor pause ulcer ultra robin cynic aroma
caulk shake dodge swill tacit other thorn trove
"""
WORDS = tuple(_WORDS.split())
"""The words of the 40 days from number `FIRST_DAY` on, of which ILQL's posts are."""
TURNS = 6
_ROW = re.compile(f"[{''.join(COLOURS)}]{{{LENGTH}}}")
_SCORE = re.compile(r"Wordle\s+([\d,.]+)\s+([1-6X])/6")


class Post(NamedTuple):
    """A posted game: the colours of its rows as patterns, and the word of its day if known."""

    patterns: tuple[int, ...]
    word: str | None = None


def read_posts(
    path: str | PathLike[str],
    column: str = "tweet_text",
    words: Mapping[Any, str] | None = None,
    games: Sequence[int] | None = None,
) -> list[Post]:
    """The games of a file; see `HumanGames`.

    Args:
        path: a file with a post in each row, or ILQL's JSON.
        column: the column of the posts.
        words: of the days, by number; None for `WORDS`.
        games: numbers of the games that are taken, from 0 in the order of the file; None for all.

    Raises:
        ValueError: the file cannot be read, has no such column, or holds no such games.
    """
    days = _days(words)
    found = _prepared(Path(path))
    if found is None:
        texts = _column(Path(path), column)
        found = [post for text in texts if (post := read_post(text, days))]
    if games is not None:
        where = "human games: number of a game"
        found = [found[whole_number(where, i, str(path), 0, len(found) - 1)] for i in games]
    posts = [post for post in found if post is not None]
    if not posts:
        raise ValueError(
            f"human games: no game of Wordle in the column {column!r} of {str(path)!r}. Expected "
            "posts such as 'Wordle 210 4/6' with a line of five squares for each guess."
        )
    return posts


def _days(words: Mapping[Any, str] | None) -> dict[int, str]:
    """Words by the number of their day."""
    if words is None:
        return {FIRST_DAY + day: word for day, word in enumerate(WORDS)}
    if odd := [f"{n}: {word}" for n, word in words.items()
               if not str(n).isdecimal() or not is_word(word)]:  # fmt: skip
        raise ValueError(
            f"human games, true_word: expected words of five letters by number, such as "
            f"{FIRST_DAY}: {WORDS[0]}; got {odd[0]}."
        )
    return {int(number): word for number, word in words.items()}


def read_post(text: str, days: Mapping[int, str]) -> Post | None:
    """The game in a post; None where squares and score do not agree."""
    rows = _ROW.findall(text.replace("\N{VARIATION SELECTOR-16}", ""))
    score = _SCORE.search(text)
    game = _game(rows)
    if score is None or game is None or (game[-1] == SOLVED) == (score[2] == "X"):
        return None
    if score[2] != "X" and len(game) != int(score[2]):
        return None
    return Post(game, days.get(int(re.sub(r"\D", "", score[1]) or 0)))


def _game(rows: Sequence[Sequence[str]]) -> tuple[int, ...] | None:
    """The patterns of rows of squares; None where they are no whole game."""
    patterns = tuple(_pattern(row) for row in rows)
    if not patterns or SOLVED in patterns[:-1] or len(patterns) > TURNS:
        return None
    return patterns if patterns[-1] == SOLVED or len(patterns) == TURNS else None


def _pattern(row: Sequence[str]) -> int:
    number = 0
    for square in row:
        number = 3 * number + COLOURS[square]
    return number


def _prepared(path: Path) -> list[Post | None] | None:
    """The games of ILQL's JSON, None for each that is not whole; None for any other file.

    Its ``transitions``, from colours to words, are not read: the task has its own.
    """
    try:
        parts = parts_of(path)
    except OSError:
        return None  # `_column` says why
    if len(parts) != 1 or parts[0].suffix != ".json":
        return None
    content = parse_json(parts[0].text(), parts[0].name)
    if not isinstance(content, Mapping):
        return None
    games = content.get("games")
    if not isinstance(games, list):
        raise ValueError(
            f"human games, {path}: expected a list 'games'; got {', '.join(content)[:80]}."
        )
    return [_prepared_game(game, f"{path}, games[{i}]") for i, game in enumerate(games)]


def _prepared_game(game: Any, where: str) -> Post | None:
    try:
        word, rows = game
        squares = [[NAMES[name] for name in re.findall("<.>", row)] for row in rows]
        if is_word(word) and all(len(row) == LENGTH for row in squares):
            patterns = _game(squares)
            return Post(patterns, word) if patterns else None
    except (LookupError, TypeError, ValueError):
        pass
    raise ValueError(
        f"human games, {where}: expected a word and rows such as '<b><y><b><b><g>'; "
        f"got {game!r:.80}."
    )


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
