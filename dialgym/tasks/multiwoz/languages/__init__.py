"""The languages of multi-domain dialogues: acts in their notation, as words, or as English."""

from collections.abc import Callable, Mapping

from dialgym.tasks.multiwoz.data import World
from dialgym.tasks.multiwoz.languages.base import NLG, NLU, Language, Notation
from dialgym.tasks.multiwoz.languages.english import English
from dialgym.tasks.multiwoz.languages.words import Words

LANGUAGES: Mapping[str, Callable[[World], Language]] = {
    "acts": Notation,
    "words": Words,
    "english": English,
}
"""By name; each is made of a world."""

__all__ = ["LANGUAGES", "NLG", "NLU", "English", "Language", "Notation", "Words"]
