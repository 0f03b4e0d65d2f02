"""Readings of what a language model writes: its reasoning left out, and the answer found."""

import re
from collections.abc import Callable, Mapping

THOUGHT, THOUGHT_END = "<think>", "</think>"
_OPEN_THOUGHT = re.compile(f"{THOUGHT}.*", re.DOTALL)
_ANSWER = re.compile(r"<answer>(.*?)(?:</answer>|$)", re.DOTALL)


def without_reasoning(text: str) -> str:
    """A text after its reasoning, ``<think> ... </think>``; of one that still thinks, what was
    before."""
    said = text.rpartition(THOUGHT_END)[2]
    return _OPEN_THOUGHT.sub("", said)


def last_line(text: str) -> str:
    """The last line with a word in it; "" where there is none."""
    lines = [line for line in without_reasoning(text).splitlines() if line.strip()]
    return lines[-1] if lines else ""


def tagged(text: str) -> str:
    """The text of the last ``<answer> ... </answer>``; "" where there is none."""
    found = _ANSWER.findall(without_reasoning(text))
    return found[-1] if found else ""


READINGS: Mapping[str, Callable[[str], str]] = {
    "whole": without_reasoning,
    "last line": last_line,
    "tag": tagged,
}
"""By name, how a text is read."""
REQUESTS: Mapping[str, str] = {
    "last line": "Only the last line of what you write is said.",
    "tag": "Only what you write between <answer> and </answer> is said.",
}
"""Sentences of a brief that ask for the form that a reading needs."""
