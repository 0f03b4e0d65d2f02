"""Findings about a dialogue that is over, which an analysis of many counts."""

from collections.abc import Mapping, Sequence, Set
from itertools import zip_longest
from typing import NamedTuple

Labelled = tuple[str, object]
"""An act without its value, ``inform(food)``, and what else it says."""
TELL, ASK, CHECK, OFFER, NOTHING = "tell", "ask", "check", "offer", "nothing found"
YES, NO, ELSE, MORE, AGAIN = "yes", "no", "something else", "anything more", "say again"
GREETING, THANKS, BYE, OTHER, MISPLACED = "greeting", "thanks", "bye", "other", "other party's"
"""Kinds of utterances. `MISPLACED` makes sense of the other party alone."""


class Reading(NamedTuple):
    """An utterance as the task understands it.

    Attributes:
        kinds: of the above; empty where nothing in it is understood.
        told: slots with the values that it states.
        asked: slots that it asks for.
    """

    kinds: Set[str] = frozenset()
    told: Sequence[tuple[str, str]] = ()
    asked: Sequence[str] = ()


class GoalTalk(NamedTuple):
    """The user's goal, and what both parties have said about it.

    Attributes:
        wishes: by slot the values that the goal gives it, a later one in the place of another too.
        requests: slots that the user is to ask for.
        needs: slots that the system has told once the user has all that it wants.
        readings: of each line of the user's transcript, its notes aside.
    """

    wishes: Mapping[str, Set[str]]
    requests: Set[str]
    needs: Set[str]
    readings: Sequence[Reading]


class Findings(NamedTuple):
    """Findings about one dialogue.

    Attributes:
        domains: measures from 0 to 1 by domain of the user's goal, ``success`` among them; -1 where
            there was nothing to measure.
        requests: whether each of the user's requests was answered.
        failures: what a failure was due to, in a few words, the same in dialogues that are alike.
        misheard: acts that the system took for others, without values, ``inform(food) as null()``.
        talk: the user's goal and its words about it; None where a task has no goals in slots.
    """

    domains: Mapping[str, Mapping[str, float]] = {}
    requests: Mapping[str, bool] = {}
    failures: Sequence[str] = ()
    misheard: Sequence[str] = ()
    talk: GoalTalk | None = None


def misheard(said: Sequence[Labelled], heard: Sequence[Labelled]) -> list[str]:
    """Name the acts of an utterance that were taken for others; empty where all was understood."""
    lost = [act for act in said if act not in heard]
    made = [act for act in heard if act not in said]
    return [_mistake(*pair) for pair in zip_longest(lost, made)]


def _mistake(said: Labelled | None, heard: Labelled | None) -> str:
    if heard is None or said is None:
        return f"{said[0]} lost" if said else f"nothing as {heard[0] if heard else ''}"
    other = "another value" if said[0] == heard[0] else heard[0]
    return f"{said[0]} as {other}"
