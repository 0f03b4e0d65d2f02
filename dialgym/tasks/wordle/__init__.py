"""Wordle: guess a hidden word from the colours of earlier guesses."""

from dialgym.tasks.wordle.task import Wordle
from dialgym.tasks.wordle.types import WordleState

__all__ = ["Wordle", "WordleState"]
