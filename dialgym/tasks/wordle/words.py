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


def load_words(source: Words, what: str) -> tuple[str, ...]:
    """The words of a file (white-space separated) or a sequence, in order, without repeats.

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
    return tuple(dict.fromkeys(words))


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
