"""Sentences of briefs: what a party is told in words before it plays."""

import re
from collections.abc import Sequence
from inspect import getdoc
from typing import Any

from dialgym.language import Utterance

NAMED = 60
"""Most things that a brief names one by one."""
SAY = "say(text)"
"""The verb of a party that does more than one thing."""
_VERB = re.compile(r"([a-z]\w*)\(([a-z]\w*)\)")


def instructions_of(task: Any, party: str) -> str:
    """Rules for `party`, and its conditions."""
    return "\n\n".join(filter(None, (rules_of(task, party), " ".join(task.conditions(party)))))


def rules_of(task: Any, party: str) -> str:
    """Rules for `party` in a sentence or two, or what the task's class says of itself."""
    about = " ".join((getdoc(type(task)) or task.name).partition("\n\n")[0].split())
    return task.how_to_play.get(party) or f"You are the {party}. {about}"


def usual_conditions(task: Any, party: str) -> Sequence[str]:
    """Sentences on turns and lengths, as the facts of any task have them."""
    return [turns_sentence(task, party), *length_sentence(task, party)]


def turns_sentence(task: Any, party: str) -> str:
    """Sentence on the turns of the first party, which is "you" where that is `party`."""
    first, limit = task.parties[0], task.facts.turn_limit
    who = "You have" if party == first else f"The {first} has"
    return f"{who} {'one turn' if limit == 1 else f'at most {limit} turns'}."


def length_sentence(task: Any, party: str) -> Sequence[str]:
    """Sentence on the characters of an utterance of `party`, where there is a limit."""
    longest = task.facts.longest.get(party)
    return [] if longest is None else [f"What you say has at most {longest} characters a turn."]


def verb_of(task: Any, party: str) -> tuple[str, str]:
    """Verb of `party`, and the name of what it is done with; ``say`` and ``text`` by default.

    Raises:
        ValueError: the task names it in another form.
    """
    written = task.verbs.get(party, SAY)
    found = _VERB.fullmatch(written)
    if found is None:
        raise ValueError(
            f"verbs of {task.name}: expected for the {party} a verb and its argument, such as "
            f"'guess(word)'; got {written!r}."
        )
    return found[1], found[2]


def listed(names: Sequence[str], last: str = "and", most: int = NAMED) -> str:
    """``a, b and c``; of more than `most` the first, and how many more there are."""
    if len(names) > most:
        return f"{', '.join(names[:most])} {last} {len(names) - most:,} more"
    *first, final = names
    return f"{', '.join(first)} {last} {final}" if first else final


def choice_sentence(what: str, names: Sequence[str], kind: str) -> str:
    """Sentence on what something can be: all names where they are few, else their number."""
    if len(names) > NAMED:
        return f"{what} is one of {len(names):,} {kind}."
    return f"{what} is one of these {kind}: {', '.join(names)}."


def leading_notes(lines: Sequence[Utterance]) -> int:
    """The number of private lines that a transcript begins with."""
    return next((i for i, line in enumerate(lines) if not line.private), len(lines))
