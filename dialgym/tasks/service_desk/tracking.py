"""Tracked dialogue state in words: the record that the open wish means, as the desk knows it."""

import json

from dialgym.tasks.service_desk.domains import NONE, NUMBER, NUMBERS
from dialgym.tasks.service_desk.texts import ALLOWED, NO_SUCH, Texts
from dialgym.tasks.service_desk.types import DeskState

MEANS, READ = "means", "read"
WORDS = (MEANS, READ, NO_SUCH)
MOST_WORDS, LENGTH = 5, 50
"""Words and characters of English, but for the changes that are allowed."""


def tracked(texts: Texts, state: DeskState, meant: int, after: str = "") -> str:
    """Text of what the desk knows of a record.

    Args:
        texts: of the domain.
        state: of the dialogue.
        meant: the record, or NONE.
        after: what a tool has answered, to which this is added.
    """
    known: dict[str, str] = {}
    if meant != NONE:
        record, was_read = state.records[meant], bool(state.read >> meant & 1)
        known = {texts.domain.noun: NUMBERS[record[NUMBER]], READ: "yes" if was_read else "no"}
        if texts.eligibility and was_read:
            known[ALLOWED] = " ".join(texts.domain.allowed(state.policy, record)) or NO_SUCH
    if texts.english:
        return json.dumps({**json.loads(after or "{}"), MEANS: known or NO_SUCH})
    return f"{after} {MEANS} {texts.result(known) or NO_SUCH}".strip()
