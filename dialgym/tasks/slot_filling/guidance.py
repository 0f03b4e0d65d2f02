"""Briefs of slot filling: what may be asked, said and gained, and the user's goal in English."""

from collections.abc import Mapping, Sequence
from typing import Any

from dialgym.language.text import Utterance, joined
from dialgym.tasks.base import SYSTEM
from dialgym.tasks.briefs import listed, turns_sentence
from dialgym.tasks.slot_filling.domain.goals import SlotFillingGoal, goal_acts
from dialgym.tasks.slot_filling.languages import LANGUAGES
from dialgym.tasks.slot_filling.languages.phrases import Phrases
from dialgym.tasks.slot_filling.summary_acts import NEVER

VALUES = 12
"""Most values of a slot that a brief names."""
NAMES_ALONE, ENGLISH = "You say nothing else than such a name.", "Speak English."
SYSTEM_FORMS = {
    "acts": 'You may also write an act in full: request({slot}), inform(name="...",{slot}="...").',
    "words": NAMES_ALONE,
    "english": "You may also say it in English.",
    "english_user": NAMES_ALONE,
}
USER_FORMS = {
    "acts": 'Speak in acts: inform({slot}="{value}"), request(name), affirm(), negate(), '
    "reqalts(), bye(), and so on.",
    "words": "Speak in acts: inform {slot} {word}, request name, affirm, negate, reqalts, bye.",
    "english": ENGLISH,
    "english_user": ENGLISH,
}
"""By language, how either party says what it means, with a slot, a value and that as one word."""


def conditions_of(task: Any, party: str) -> Sequence[str]:
    """Sentences on turns, the database, how to speak, noise and rewards."""
    own = _of_system(task) if party == SYSTEM else _of_user(task)
    return [turns_sentence(task, party), *own, *gains(task)]


def _of_system(task: Any) -> Sequence[str]:
    heard = "What you hear of the user may be wrong: each reading has its probability."
    return [
        *about_database(task),
        system_acts(task),
        _form(task, SYSTEM_FORMS),
        *([heard] if task.error_rate else []),
    ]


def system_acts(task: Any) -> str:
    """Sentence on the acts that the system can name."""
    names = [name for name in task.summary_acts.phrases if name not in NEVER]
    return f"The acts that you can name are {listed(names)}; the rules find what they tell."


def _of_user(task: Any) -> Sequence[str]:
    misheard = "What you say may be misheard; correct what the system has wrong."
    return [user_form(task), *([misheard] if task.error_rate else [])]


def user_form(task: Any) -> str:
    """Sentence on how the user says what it means."""
    return _form(task, USER_FORMS)


def _form(task: Any, forms: Mapping[str, str]) -> str:
    """The form of the task's language, with an example of its domain."""
    language = next(name for name, kind in LANGUAGES.items() if type(task.language) is kind)
    slot = task.domain.ontology.system_requestable[0]
    value = task.domain.ontology.informable[slot][0]
    return forms[language].format(slot=slot, value=value, word=joined(value))


def about_database(task: Any) -> Sequence[str]:
    """Sentences on what can be looked for, and what can be asked about a row."""
    ontology, phrases = task.domain.ontology, Phrases(task.domain)
    kinds = [
        f"{slot} ({listed([*ontology.informable[slot]], 'or', VALUES)})"
        for slot in ontology.system_requestable
    ]
    return [
        f"The user looks for {phrases.a_row}, by {listed(kinds)}.",
        f"It may ask for its {listed(ontology.requestable)}.",
    ]


def gains(task: Any) -> Sequence[str]:
    """Sentence on what a turn and the end are worth."""
    worth = task.rewards
    failure = f", failure {worth.failure:g}" if worth.failure else ""
    return [f"Each turn of the system counts {worth.turn:g}, success {worth.success:g}{failure}."]


def note_of(task: Any, goal: SlotFillingGoal) -> Utterance:
    """The user's private note of its goal, in the language of the task."""
    return Utterance("user", task.language.note(*goal_acts(goal)), private=True)


def goal_sentence(task: Any, goal: SlotFillingGoal) -> str:
    """The user's goal in English, in whatever language it speaks."""
    return task.english.note(*goal_acts(goal))
