"""Scripted systems of mazes beside those of all worlds, and sets of dialogues."""

from typing import Any

import numpy as np

from dialgym.tasks.generators import by_halves, by_skill
from dialgym.tasks.world_policies import Commander, CommandMixture, OptimalCommand, RandomCommand
from dialgym.tasks.worlds import NOTHING, WorldState

TURNS = (1, 0, 3, 2)
"""Quarter turns from the last direction, in the order of trial: right, on, left, back."""


class WallFollower(Commander):
    """Keeps its right hand at the wall, which finds the goal of any maze without loops."""

    def act(self, task: Any, state: WorldState, rng: np.random.Generator) -> int:
        walls = task.walls(state.seen[-1])
        heading = self._heading(task, state)
        ways = [(heading + turn) % len(walls) for turn in TURNS]
        return next((way for way in ways if not walls[way]), heading)

    def _heading(self, task: Any, state: WorldState) -> int:
        """Direction of the last move that met no wall; at first the first one."""
        for code, seen in zip(reversed(state.codes), reversed(state.seen[:-1])):
            if code != NOTHING and not task.walls(seen)[code]:
                return code
        return 0


graded, branching = by_skill(OptimalCommand, WallFollower, RandomCommand, CommandMixture)
halves = by_halves(OptimalCommand, RandomCommand)
