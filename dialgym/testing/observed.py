"""A check of what a task lets a party know: enough to play by, and nothing that is hidden."""

import pickle
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from dialgym.tasks import Hidden, Task
from dialgym.testing.scripts import require


def check_observed(task: Task, state: Any, party: str, seed: int) -> None:
    """Hold `task.observed(state, party)` to its contract in one state of a dialogue.

    Raises:
        AssertionError: it tells the party less than its views do, or hides nothing of what
            `facts.hidden` names; or it is no copy.
    """
    where = f"observed() of {party} (seed {seed})"
    before = pickle.dumps(state)
    seen = task.observed(state, party)
    told, known = list(task.transcript(seen, party)), list(task.transcript(state, party))
    require(told == known, task, f"{where}: its transcript is {told}; expected {known}")
    if party == task.speaker(state):
        task.constraint(seen, party)
        _check_acts(task, state, seen, party, where)
    named = task.facts.hidden.get(party, ())
    require(
        not named or hides(seen),
        task,
        f"{where} hides nothing, and facts.hidden names {named}. Name the attributes of the state "
        "in Task.hidden_fields, or hide them in observed().",
    )
    require(pickle.dumps(state) == before, task, f"{where}: making or reading it changed the state")


def _check_acts(task: Task, state: Any, seen: Any, party: str, where: str) -> None:
    """The party's observation and mask are those of the state."""
    acts = task.acts.get(party)
    if acts is not None:
        same = np.array_equal(acts.observe(seen), acts.observe(state))
        require(same, task, f"{where}: observe() of it gives something else")
        same = np.array_equal(acts.mask(seen), acts.mask(state))
        require(same, task, f"{where}: mask() of it gives something else")


def hides(value: Any, depth: int = 3) -> bool:
    """Return True if anything in a state is hidden, or in its parts down to a depth."""
    if isinstance(value, Hidden):
        return True
    return depth > 0 and any(hides(part, depth - 1) for part in _parts(value))


def _parts(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    if is_dataclass(value):
        return [getattr(value, field.name) for field in fields(value)]
    return list(getattr(value, "__dict__", {}).values())
