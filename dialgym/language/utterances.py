"""One thing said by one party, and how a list of them is written as text."""

from collections.abc import Iterable
from typing import NamedTuple

UNKNOWN = "\N{REPLACEMENT CHARACTER}"
"""Stands in a text for whatever is not text: a special token, a character outside the charset."""


class Utterance(NamedTuple):
    """What `speaker` said. `private` ones are in their speaker's own transcript only."""

    speaker: str
    text: str
    private: bool = False


def render_transcript(utterances: Iterable[Utterance]) -> str:
    """The utterances as text, a line each: ``system: crane``."""
    return "".join([f"{speaker}: {text}\n" for speaker, text, _ in utterances])
