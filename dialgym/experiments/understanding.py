"""Lines of a dialogue that the task's own understanding makes something of, or nothing."""

from typing import Any

from dialgym.language import AnyText, Constraint, allows
from dialgym.tasks import Task
from dialgym.tasks.findings import GoalTalk


def understood_lines(
    task: Task, state: Any, party: str, talk: GoalTalk | None
) -> list[bool | None]:
    """Tell of each line of a party's transcript, its notes aside, if the task understands it.

    That is its reading in `talk`; in a task without one it is whether the constraint of
    `party` allows it, and None where there is none that could forbid anything.

    Args:
        task: the rules.
        state: a dialogue that is over.
        party: whose side it is.
        talk: `Findings.talk` of the dialogue.
    """
    if talk is not None:
        return [bool(reading.kinds) for reading in talk.readings]
    constraint = task.static_constraint(party)
    lines = task.transcript(state, party)[task.notes(state, party) :]
    return [follows(constraint, line.text) for line in lines]


def not_understood(task: Task, state: Any, party: str) -> int:
    """Count the texts of `party` that the task makes nothing of."""
    talk = task.findings(state).talk
    heard = task.parties[1] if talk is not None else party
    lines = task.transcript(state, heard)[task.notes(state, heard) :]
    known = understood_lines(task, state, heard, talk)
    return sum(line.speaker == party and own is False for line, own in zip(lines, known))


def follows(constraint: Constraint | None, text: str) -> bool | None:
    """Tell if a constraint allows a text; None where there is none that could forbid one."""
    if constraint is None or isinstance(constraint, AnyText):
        return None
    return allows(constraint, text)
