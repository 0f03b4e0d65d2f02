"""The languages of slot filling: acts in their notation, as words, or as English sentences.

In English the system may be kept to the names of summary acts, as in words.
"""

from collections.abc import Callable, Mapping

from dialgym.tasks.slot_filling.domain import Domain
from dialgym.tasks.slot_filling.languages.english import SlotFillingEnglish, SlotFillingEnglishUser
from dialgym.tasks.slot_filling.languages.notation import (
    HYPOTHESES,
    SlotFillingLanguage,
    SlotFillingNotation,
    read_notation,
)
from dialgym.tasks.slot_filling.languages.words import USER_ACTS, SlotFillingWords

LANGUAGES: Mapping[str, Callable[[Domain, int], SlotFillingLanguage]] = {
    "acts": SlotFillingNotation,
    "words": SlotFillingWords,
    "english": SlotFillingEnglish,
    "english_user": SlotFillingEnglishUser,
}
"""By name; each is made of a domain, and of the number of hypotheses that the system hears."""

__all__ = [
    "HYPOTHESES",
    "LANGUAGES",
    "USER_ACTS",
    "SlotFillingEnglish",
    "SlotFillingEnglishUser",
    "SlotFillingLanguage",
    "SlotFillingNotation",
    "SlotFillingWords",
    "read_notation",
]
