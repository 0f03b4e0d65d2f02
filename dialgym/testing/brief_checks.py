"""A check of briefs: what a party is told in words before it plays."""

import pickle
import re
from contextlib import suppress
from typing import Any

import numpy as np

from dialgym.language.text import CHARSET
from dialgym.tasks import NamesTruth, Task
from dialgym.tasks.briefs import verb_of
from dialgym.testing.scripts import require

SHORTEST = 4
"""Characters of the shortest word that tells something."""
_WORDS = re.compile(rf"\w{{{SHORTEST},}}")


def check_brief(task: Task, state: Any, party: str, first: str, seed: int) -> None:
    """Hold `task.brief(state, party)` to its contract in one state of a dialogue.

    Args:
        first: the brief at the beginning of the dialogue.

    Raises:
        AssertionError: it is empty, has other characters than the printable ones and those of the
            task, has changed since the beginning, reads what the party is not told, or changes
            the state.
    """
    where = f"brief() of {party} (seed {seed})"
    before = pickle.dumps(state)
    brief = task.brief(state, party)
    require(brief.strip(), task, f"{where} is empty. Give how_to_play[{party!r}].")
    foreign = {*brief} - {*CHARSET, "\n", *task.facts.charset}
    require(not foreign, task, f"{where} has the characters {sorted(foreign)}")
    require(
        brief == first,
        task,
        f"{where} has changed in the dialogue, from {first!r} to {brief!r}. Notes that the party "
        "has said itself are none: see Task.notes.",
    )
    seen = task.brief(task.observed(state, party), party)  # hidden parts refuse to be read
    require(seen == brief, task, f"{where}: of observed() it is {seen!r}; expected {brief!r}")
    require(pickle.dumps(state) == before, task, f"{where}: making it changed the state")


def check_verbs(task: Task) -> None:
    """Hold the verbs of a task to their form, of which tools are made.

    Raises:
        AssertionError: one is of another form, or of a party that there is none of.
    """
    unknown = [*task.verbs.keys() - {*task.parties}]
    require(not unknown, task, f"verbs are of {unknown}; the parties are {task.parties}")
    for party in task.parties:
        try:
            verb_of(task, party)
        except ValueError as error:
            raise AssertionError(str(error)) from error


def check_leaks(task: Task, seed: int) -> None:
    """Hold the briefs of two dialogues against what the other parties know.

    Raises:
        AssertionError: a brief has a word of what only another party is told, which it does not
            have in another dialogue.
    """
    states = [task.initial(np.random.default_rng(s), None) for s in (seed, seed + 1)]
    for party in task.parties:
        here, there = [_words(task.brief(state, party)) for state in states]
        told = _words(" ".join(line.text for line in task.transcript(states[0], party)))
        for other in task.parties:
            leaked = (_secrets(task, states[0], other) & here) - there - told
            require(
                other == party or not leaked,
                task,
                f"brief() of {party} (seed {seed}) has {sorted(leaked)}, which only {other} knows",
            )


def _secrets(task: Task, state: Any, party: str) -> set[str]:
    """Words that a party is told in private, and those that name what is hidden."""
    private = [line.text for line in task.transcript(state, party) if line.private]
    named = []
    if isinstance(task, NamesTruth):
        with suppress(ValueError):  # a host that has not settled on anything
            named.append(task.naming(state))
    return _words(" ".join([*private, *named, task.scenario(state, party)]))


def _words(text: str) -> set[str]:
    return {word.lower() for word in _WORDS.findall(text)}
