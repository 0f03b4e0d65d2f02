"""Briefs of MultiWOZ: how either party speaks, what it hears, and what is gained."""

from collections.abc import Mapping, Sequence
from typing import Any

from dialgym.tasks.base import SYSTEM
from dialgym.tasks.briefs import listed, turns_sentence
from dialgym.tasks.multiwoz.entries import SYSTEM_ENTRIES
from dialgym.tasks.multiwoz.languages import LANGUAGES
from dialgym.tasks.multiwoz.languages.grammar import entry_kind, entry_slot
from dialgym.tasks.multiwoz.ontology import DOMAINS, INFORMABLE
from dialgym.tasks.multiwoz.types import NONE
from dialgym.tasks.multiwoz.vectors import BINS

NO_DATABASE = (
    "You have no way to look into the database in this language: you know what you have heard."
)
SYSTEM_FORMS = {
    "acts": 'Speak in acts with their values: Hotel-Request(Area) Hotel-Recommend(Name="...") '
    f'Booking-Book(Ref="...") general-bye(). {NO_DATABASE}',
    "english": f"Speak English. {NO_DATABASE}",
}
USER_FORMS = {
    "acts": 'Speak in acts: Hotel-Inform(Area="north",Stars="4") Hotel-Request(Phone) '
    "general-bye().",
    "words": "Speak in acts: hotel-inform area north stars 4 hotel-request phone general-bye.",
    "english": "Speak English.",
}
"""By language, how either party says what it means."""
MISHEARD = "The system may mishear what is said."


def conditions_of(task: Any, party: str) -> Sequence[str]:
    """Sentences on turns, how to speak, noise and rewards."""
    language = next(name for name, kind in LANGUAGES.items() if type(task.language) is kind)
    own = _system_form(language) if party == SYSTEM else [USER_FORMS[language]]
    noise = [MISHEARD] if task.channel.rate else []
    worth = "The goal counts 80 at the end, its failure -40, a domain that is done 5, a turn -1."
    default = task.rules.settings.reward == "default"
    return [turns_sentence(task, party), *own, *noise, *([worth] if default else [])]


def chat_advice(language: str) -> Mapping[str, str]:
    """Advice for chats of the system, where its language has no way into the database."""
    if language == "words":
        return {}
    return {
        SYSTEM: f"the system has no way to look into the database in language={language!r}. "
        "For a language model take language='words', in which it names what the rules look up."
    }


def _system_form(language: str) -> Sequence[str]:
    """Sentences on the speech of the system: in words it names acts, and hears what is found."""
    if language != "words":
        return [SYSTEM_FORMS[language], _slots()]
    return [
        "You say up to eight acts without their values; the rules find these in the database: "
        "hotel-recommend name hotel-inform area. An act is a kind and its slots; name2 is the "
        "name of the second row that is found.",
        "After = you hear what is believed so far, and how many rows match it: "
        f"hotel matches3 area north. matches0 is none, matches{BINS - 1} the most.",
        f"The kinds are {_kinds()}.",
    ]


def _kinds() -> str:
    """``hotel-inform (addr, area, ...)`` for each kind of act that the system can name."""
    kinds: dict[str, list[str]] = {}
    for entry in SYSTEM_ENTRIES:
        if entry.place < 2:
            kinds.setdefault(entry_kind(entry), []).append(entry_slot(entry))
    return "; ".join(
        kind if slots == [NONE] else f"{kind} ({', '.join(s for s in slots if s != NONE)})"
        for kind, slots in kinds.items()
    )


def _slots() -> str:
    known = [f"{domain} ({listed(INFORMABLE[domain])})" for domain in DOMAINS if INFORMABLE[domain]]
    return f"The user can look for {listed(known, 'or')}, or the police."
