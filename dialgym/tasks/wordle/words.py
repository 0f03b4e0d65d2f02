"""Word lists of Wordle: the built-in ones, and those of a file or a sequence."""

from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import files
from os import PathLike
from pathlib import Path

from dialgym.io.files import read_file
from dialgym.tasks.wordle.patterns import LENGTH

Words = Sequence[str] | str | PathLike[str]


@cache
def builtin(name: str) -> tuple[str, ...]:
    """A built-in list: ``answers`` (the most common first) or ``guesses`` (alphabetical)."""
    text = (files("dialgym.tasks.wordle") / "words" / f"{name}.txt").read_text("ascii")
    return tuple(text.split())


def answers_of(source: Words | None, count: int | None) -> tuple[str, ...]:
    """The first `count` answers of a source, None for the built-in list and for all.

    Raises:
        ValueError: there are not so many, or see `load_words`.
    """
    words = builtin("answers") if source is None else load_words(source, "answers")
    if count is None:
        return words
    if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count <= len(words):
        raise ValueError(
            f"words of Wordle must be a whole number from 1 to {len(words)}, the length of its "
            f"list of answers; got {count!r}."
        )
    return words[:count]


def guesses_of(source: Words, answers: tuple[str, ...]) -> tuple[str, ...]:
    """All legal guesses, alphabetical; the answers are always among them."""
    if isinstance(source, str) and source in ("answers", "any"):
        extra: tuple[str, ...] = ()
    elif isinstance(source, str) and source == "allowed":
        extra = builtin("guesses")
    else:
        extra = load_words(source, "guesses")
    return tuple(sorted({*answers, *extra}))


def load_words(source: Words, what: str) -> tuple[str, ...]:
    """The words of a file (white-space separated) or a sequence, in order, without repeats.

    Those of a set, whose order differs between processes, are sorted.

    Raises:
        ValueError: the file cannot be read, or a word is not five lower-case letters.
    """
    if not isinstance(source, Iterable | PathLike):
        raise ValueError(
            f"Wordle {what}: expected a list of words, or the path of a file; got {source!r}."
        )
    words = _read(Path(source), what) if isinstance(source, (str, PathLike)) else list(source)
    bad = [word for word in words if not is_word(word)]
    if bad or not words:
        got = f"{bad[0]!r} ({len(bad)} such)" if bad else "no words"
        raise ValueError(
            f"Wordle {what}: expected words of {LENGTH} letters a-z; got {got}. "
            "Remove what is not such a word."
        )
    found = dict.fromkeys(map(str, words))
    return tuple(sorted(found) if isinstance(source, set | frozenset) else found)


def is_word(text: object) -> bool:
    """Return True if a text is five lower-case letters."""
    return (
        isinstance(text, str) and len(text) == LENGTH and text.isascii() and text.isalpha()
        and text.islower()
    )  # fmt: skip


def _read(path: Path, what: str) -> list[str]:
    try:
        return read_file(path).decode("utf-8").lower().split()
    except (OSError, ValueError) as error:
        raise ValueError(
            f"Wordle {what}: expected a text file of words at {str(path)!r}; got {error}. "
            "Check the path."
        ) from error
