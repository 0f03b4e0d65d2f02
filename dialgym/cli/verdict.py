"""The question if the user was served, at the end of a dialogue with a person."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from dialgym.cli.common import complain, console
from dialgym.io.files import check_writable

AskRatings = Annotated[
    Path | None,
    typer.Option(
        "--ratings",
        metavar="FOLDER",
        help="Ask at the end if the user was served, and keep the answer in this folder.",
    ),
]


def check_ratings(folder: Path | None) -> None:
    """Raise an error for a folder that cannot keep ratings, before the dialogue that they are of.

    Raises:
        OSError: it cannot be written.
        ValueError: a file there is of another kind.
    """
    from dialgym.viewer.ratings import Ratings

    if folder is not None:
        check_writable(folder)
        Ratings(folder)


def ask_success(folder: Path | None, texts: Sequence[str], question: str, **about: Any) -> None:
    """Ask if the user was served, and keep the answer where there is a folder for it.

    Args:
        folder: of the ratings; nothing is asked without one, or of a dialogue without a word.
        texts: all that was said.
        question: of yes or no.
        about: further arguments of `dialgym.viewer.ratings.success_row`.
    """
    from dialgym.viewer.ratings import SUCCESSES, Ratings, success_row

    if folder is None or not texts:
        return
    ratings = Ratings(folder)
    served = _answer(question)
    if served is not None:
        ratings.put(SUCCESSES, success_row(texts, served, **about))
        console.print(f"kept in {ratings.file(SUCCESSES)}", style="dim")


def _answer(question: str) -> bool | None:
    """The answer of the person; None if there is none."""
    while True:
        try:
            answer = console.input(f"{question} (y/n) ").strip().lower()
        except (EOFError, KeyboardInterrupt):
            console.print()
            return None
        if answer in ("y", "yes", "n", "no"):
            return answer[0] == "y"
        complain("expected y or n.")
