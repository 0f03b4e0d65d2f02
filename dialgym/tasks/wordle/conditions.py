"""Briefs of Wordle: what the settings make of the game, in words."""

from collections.abc import Sequence
from typing import Any

from dialgym.tasks.base import SYSTEM
from dialgym.tasks.briefs import choice_sentence

LOOSE = "Each letter is judged by itself: repeated ones are not counted."
OPENED = "The first is made for you."
HARD = "A guess must use all that the colours have shown."


def conditions_of(task: Any, party: str) -> Sequence[str]:
    """Sentences on turns, words, invalid guesses and rewards."""
    if party != SYSTEM:
        word = choice_sentence("It", list(task.drawn_index), "words")
        drawn = "In the place of any other text a word that was drawn stands."
        return ["You speak once: say the word, and nothing else.", word, drawn]
    count = "one guess" if task.turns == 1 else f"{task.turns} guesses"
    return [
        f"You have {count}; each is five lower-case letters and nothing else.",
        *([OPENED] if task.host == "opening" else []),
        choice_sentence("The secret", task.answers, "words"),
        _guesses(task),
        *([LOOSE] if task.feedback == "ilql" else []),
        *([HARD] if task.hard_mode else []),
        _invalid(task),
    ]


def _guesses(task: Any) -> str:
    if task.any_guess:
        return "Any five letters can be guessed."
    if len(task.guesses) == len(task.answers):
        return "Only these words can be guessed."
    return f"{len(task.guesses):,} words can be guessed, the secret ones among them."


def _invalid(task: Any) -> str:
    if task.invalid == "turn":
        return "Anything else is answered by invalid, and costs a guess."
    return (
        "Anything else is answered by invalid: it counts against you as a wrong guess, and leaves "
        f"you the turn; {task.turns} of them end the game."
    )
