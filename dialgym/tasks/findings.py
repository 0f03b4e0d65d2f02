"""Findings about a dialogue that is over, which an analysis of many counts."""

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import NamedTuple

Labelled = tuple[str, object]
"""An act without its value, ``inform(food)``, and what else it says."""


class Findings(NamedTuple):
    """Findings about one dialogue.

    Attributes:
        domains: measures from 0 to 1 by domain of the user's goal, ``success`` among them; -1 where
            there was nothing to measure.
        requests: whether each of the user's requests was answered.
        failures: what a failure was due to, in a few words, the same in dialogues that are alike.
        misheard: acts that the system took for others, without values, ``inform(food) as null()``.
    """

    domains: Mapping[str, Mapping[str, float]] = {}
    requests: Mapping[str, bool] = {}
    failures: Sequence[str] = ()
    misheard: Sequence[str] = ()


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
