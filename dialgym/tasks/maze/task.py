"""The rules of mazes."""

from collections.abc import Sequence

import numpy as np

from dialgym.errors import whole_number
from dialgym.tasks.base import SYSTEM, USER
from dialgym.tasks.grid_picture import GridPicture
from dialgym.tasks.maze.drawings import DOUBLE_T, carved, cells_of
from dialgym.tasks.worlds import CommandWorld, WorldState, WorldTask, told

ROOM = "dialgym.tasks.maze.policies"
COMMANDS = ("move left", "move up", "move right", "move down")
SIDES = ("left", "above", "right", "below")
STEPS = ((0, -1), (-1, 0), (0, 1), (1, 0))
"""Rows and columns that each command goes."""


class Maze(WorldTask):
    """Find the goal of a maze by commands, told where one is or only which walls are around.

    The host (`user`) first chooses where the `system` begins, in private. Then the rules answer
    each command in its name. Fully observed they tell goal, position (row and column) and walls,
    ``goal 8 6 ; here 5 4 ; walls above below``; partially observed the walls alone, so that one has
    to remember, and to try. Commands are ``move left``, ``move up``, ``move right`` and ``move
    down``; a move into a wall changes nothing. Other text does nothing.

    Rewards: -1 for each command that does not reach the goal, 0 for the one that does, -4 for what
    is no command. The host's reward is the opposite. The dialogue is over (terminated) at the goal,
    a success, or after `turns` commands.

    The policy `optimal` has the best expected return of all that know the maze and what was told:
    it is computed by value iteration, partially observed over beliefs. `informed` sees the position
    itself, which is a bound that nobody who does not can be asked to reach.

    Args:
        maze: ``"double-t"``, 26 cells in 10 rows of 13, of which a bar has a T at either end and
            the goal at the end of its stem; a whole number, the seed of a maze without loops; or
            rows of a drawing, ``#`` for walls and ``G`` for the goal.
        observation: ``"full"`` or ``"partial"``.
        rows, columns: of a maze that is made of a seed, walls around it included.
        turns: commands in a dialogue.
        constraint: what action masks allow: ``"commands"``, or None (any text).

    Options of reset: ``start``, such as ``start at 5 4``; any cell but the goal.

    Versions:
        v0: the first, of dialgym 0.1.

    Raises:
        ValueError: a setting is not one of the above; a drawing has not one goal, or a cell from
            which there is no way to it.

    Source: the game, rewards and turns are those of LMRL-Gym (Abdulhai et al., 2023), whose maze
    has the same size, goal and number of cells; the drawing and the texts are our own.
    """

    name = "Maze"
    how_to_play = {  # noqa: RUF012
        "system": "Find the goal of a maze: move left, move up, move right or move down. Each "
        "command costs 1 until you are there, and a text that is no command costs 4. Positions are "
        "rows and columns, counted from 0 at the top left.",
        "user": "Choose where the other one begins in a maze, in private; the rules then answer "
        "commands in your name.",
    }
    speakers = {  # noqa: RUF012
        USER: WorldTask.speakers[USER],
        SYSTEM: {**WorldTask.speakers[SYSTEM], "wall-follower": f"{ROOM}:WallFollower"},
    }
    generators = {  # noqa: RUF012
        name: f"{ROOM}:{name}" for name in ("graded", "branching", "halves")
    }

    def __init__(
        self,
        maze: str | int | Sequence[str] = "double-t",
        observation: str = "full",
        rows: int = 10,
        columns: int = 13,
        turns: int = 100,
        constraint: str | None = "commands",
    ) -> None:
        self.drawing = self._drawing(maze, rows, columns)
        self.cells, goal = cells_of(self.drawing, self.name)
        super().__init__(
            self._world(goal, observation == "partial"), turns, observation, constraint
        )

    def _drawing(self, maze: object, rows: int, columns: int) -> tuple[str, ...]:
        whole_number("rows", rows, self.name, least=5)
        whole_number("columns", columns, self.name, least=5)
        if isinstance(maze, np.ndarray):
            maze = maze.tolist()
        if maze == "double-t":
            return DOUBLE_T
        if isinstance(maze, Sequence) and not isinstance(maze, str):
            return tuple(map(str, maze))
        if isinstance(maze, str):
            raise ValueError(
                f"maze of {self.name}: expected 'double-t', a whole number or rows of a drawing; "
                f"got {maze!r}."
            )
        return carved(rows, columns, whole_number("maze", maze, self.name, least=0))

    def _world(self, goal: int, partial: bool) -> CommandWorld:
        number = {cell: at for at, cell in enumerate(self.cells)}
        after = np.array(
            [
                [number.get((row + down, column + right), at) for down, right in STEPS]
                for (row, column), at in number.items()
            ]
        )
        walls = after == np.arange(len(after))[:, None]
        texts = [
            self._text(cell, self.cells[goal], row, partial) for cell, row in zip(number, walls)
        ]
        texts[goal] = "this is the goal"
        signals, said = told(texts)
        starts = np.delete(np.arange(len(after)), goal)
        names = tuple("start at {} {}".format(*self.cells[start]) for start in starts)
        ends, allowed = np.arange(len(after)) == goal, np.ones(after.shape, bool)
        return CommandWorld(
            COMMANDS, after, allowed, ends, signals, said, starts, names, -1.0, 0.0, -4.0
        )

    @staticmethod
    def _text(
        cell: tuple[int, int], goal: tuple[int, int], walls: np.ndarray, partial: bool
    ) -> str:
        sides = " ".join(side for side, wall in zip(SIDES, walls) if wall)
        around = f"walls {sides}" if sides else "no walls"
        where = "goal {} {} ; here {} {} ; ".format(*goal, *cell)
        return around if partial else where + around

    def walls(self, signal: int) -> np.ndarray:
        """(4,) bool: the sides with a wall where `signal` is told, in the order of commands."""
        place = int(np.flatnonzero(self.world.signals == signal)[0])
        walls: np.ndarray = self.world.after[place] == place
        return walls

    def picture(self, state: WorldState) -> np.ndarray | None:
        """The maze, the way that was gone, and where one is.

        None of a partial one until all is over: whoever plays is not told where it began.
        """
        if self.observation == "partial" and not state.over:
            return None
        sheet = GridPicture(len(self.drawing), len(self.drawing[0]), "#2b303b")
        for cell in self.cells:
            sheet.cell(cell, "#f4f6fa")
        sheet.cell(self.cells[int(np.flatnonzero(self.world.ends)[0])], "#7fc98f")
        return sheet.drawn([self.cells[place] for place in self.path(state)])
