"""Messages of chat models: transcripts in their form, one party's words as the assistant's."""

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import TypedDict

from dialgym.language.text import Utterance, render_transcript

SYSTEM, USER, ASSISTANT = "system", "user", "assistant"
"""The roles: instructions, the other party, and the party whose words a model writes."""
OPENER = "Begin."
"""A user's turn where nobody has spoken yet: many templates and clients begin with none else."""
WAITING = "(go on)"
"""A user's turn without words: no two turns of the assistant follow one another."""


class Message(TypedDict):
    """One message of a chat."""

    role: str
    content: str


def role_of(speaker: str, party: str) -> str:
    """The role of a speaker in the chat of `party`."""
    return ASSISTANT if speaker == party else USER


def to_messages(lines: Iterable[Utterance], party: str) -> list[Message]:
    """Messages of a transcript as `party` sees it; neighbours of one role are joined by a break.

    Args:
        lines: without what the party was told in private, which is part of its brief.
        party: whose chat it is.
    """
    return [
        Message(role=role, content="\n".join([line.text for line in block]))
        for role, block in groupby(lines, lambda line: role_of(line.speaker, party))
    ]


def opening(brief: str, lines: Iterable[Utterance], party: str) -> list[Message]:
    """Messages before the first turn of `party`: its brief, then turns that end with a user's.

    Lines of its own party, which it never said, stay the assistant's. Turns of user and assistant
    alternate, and none of a user is empty.
    """
    turns = to_messages(lines, party)
    if not turns or turns[0]["role"] == ASSISTANT:
        turns.insert(0, Message(role=USER, content=OPENER))
    if turns[-1]["role"] == ASSISTANT:
        turns.append(Message(role=USER, content=WAITING))
    for turn in turns:
        if turn["role"] == USER:
            turn["content"] = spoken(turn["content"])
    return [Message(role=SYSTEM, content=brief), *turns]


def heard_text(lines: Sequence[Utterance], party: str) -> str:
    """Text of what `party` hears after its turn; "" where that is nothing.

    A line each. Where rules answer in its own name, it is a transcript with the speakers' names.
    """
    if any(speaker == party for speaker, _, _ in lines):
        return render_transcript(lines).rstrip("\n")
    return "\n".join([text for _, text, _ in lines])


def spoken(text: str) -> str:
    """A user's text, or `WAITING` in the place of one without a word."""
    return text if text.strip() else WAITING
