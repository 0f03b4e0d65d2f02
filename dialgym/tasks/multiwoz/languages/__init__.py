"""The languages of multi-domain dialogues: acts in their notation, as words, or as English."""

from collections.abc import Callable, Mapping

from dialgym.tasks.multiwoz.data import World
from dialgym.tasks.multiwoz.languages.base import NLG, NLU, MultiWOZLanguage, MultiWOZNotation
from dialgym.tasks.multiwoz.languages.english import MultiWOZEnglish
from dialgym.tasks.multiwoz.languages.words import MultiWOZWords

LANGUAGES: Mapping[str, Callable[[World], MultiWOZLanguage]] = {
    "acts": MultiWOZNotation,
    "words": MultiWOZWords,
    "english": MultiWOZEnglish,
}
"""By name; each is made of a world."""

__all__ = [
    "LANGUAGES",
    "NLG",
    "NLU",
    "MultiWOZEnglish",
    "MultiWOZLanguage",
    "MultiWOZNotation",
    "MultiWOZWords",
]
