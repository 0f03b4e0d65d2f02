"""Scenarios of a game that are as options of reset say."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dialgym.tasks.bargain.games import Numbers
from dialgym.tasks.base import SYSTEM, USER


def fitting(task: Any, given: Mapping[str, Any]) -> np.ndarray:
    """(n, 2) rows of the profiles of system and user of the scenarios that are as options say.

    They are those of the task's contexts, and where none of these is so of the whole game.

    Raises:
        ValueError: none is, or an option is no list of whole numbers.
    """
    game = task.game
    wanted = {name: _numbers(task, name, value) for name, value in given.items()}
    table = wanted.get("table")
    fits = [
        np.array([table in (None, t) and wanted.get(party) in (None, v) for t, v in profiles])
        for party, profiles in zip(task.parties, game.profiles, strict=True)
    ]
    for scenarios in (task.scenarios, game.scenarios):
        found: np.ndarray = scenarios[fits[0][scenarios[:, 0]] & fits[1][scenarios[:, 1]]]
        if len(found):
            return found
    (table, system), (_, user) = (
        game.profiles[at][row] for at, row in enumerate(game.scenarios[0])
    )
    known = {"table": table, SYSTEM: system, USER: user}
    example = ", ".join(f"{name}={list(known[name])}" for name in task.options)
    raise ValueError(
        f"options of {task.name}: expected a table and values of the game {game.name!r} that "
        f"go together, such as {example}; got {dict(given)!r}."
    )


def _numbers(task: Any, name: str, value: Any) -> Numbers:
    """The whole numbers of an option."""
    values = value if isinstance(value, Sequence | np.ndarray) else [value]
    whole = all(isinstance(one, int | np.integer) and not isinstance(one, bool) for one in values)
    if isinstance(value, str) or not whole:
        raise ValueError(
            f"{name} in options of {task.name}: expected whole numbers, one for each kind; got "
            f"{value!r}."
        )
    return tuple(int(one) for one in values)
