"""The languages of slot filling: acts in their notation, as words, or as English sentences."""

from collections.abc import Callable, Mapping

from dialgym.tasks.slot_filling.domain import Domain
from dialgym.tasks.slot_filling.languages.english import English
from dialgym.tasks.slot_filling.languages.notation import (
    HYPOTHESES,
    Language,
    Notation,
    read_notation,
)
from dialgym.tasks.slot_filling.languages.words import USER_ACTS, Words

LANGUAGES: Mapping[str, Callable[[Domain, int], Language]] = {
    "acts": Notation,
    "words": Words,
    "english": English,
}
"""By name; each is made of a domain, and of the number of hypotheses that the system hears."""

__all__ = [
    "HYPOTHESES",
    "LANGUAGES",
    "USER_ACTS",
    "English",
    "Language",
    "Notation",
    "Words",
    "read_notation",
]
