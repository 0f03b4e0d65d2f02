"""Scripted systems of TextNav beside those of all worlds, and sets of dialogues."""

from typing import Any

import numpy as np

from dialgym.tasks.generators import by_halves, by_skill
from dialgym.tasks.text_nav.houses import SIDES
from dialgym.tasks.world_policies import (
    Commander,
    CommandMixture,
    OptimalCommand,
    RandomCommand,
)
from dialgym.tasks.worlds import WorldState

TAKE, USE = 2 * len(SIDES), 2 * len(SIDES) + 2
"""Codes of taking the thing, and of the errand; before them are those of ways and doors."""


class Wanderer(Commander):
    """Takes the thing and does the errand where it can; else goes on anywhere, rarely back."""

    def act(self, task: Any, state: WorldState, rng: np.random.Generator) -> int:
        allowed = task.allowed[state.seen[-1]]
        for code in (USE, TAKE):
            if allowed[code]:
                return code
        ways = np.flatnonzero(allowed[:TAKE]).tolist()
        last = next((code for code in reversed(state.codes) if 0 <= code < TAKE), -1)
        back = (last + 2) % 4 if 0 <= last < len(SIDES) else -1
        onward = [code for code in ways if code != back] or ways
        return onward[int(rng.integers(len(onward)))]


graded, branching = by_skill(OptimalCommand, Wanderer, RandomCommand, CommandMixture)
halves = by_halves(OptimalCommand, RandomCommand)
