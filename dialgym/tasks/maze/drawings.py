"""Mazes as drawings: the built-in one, those made of a seed, and the cells of any."""

from collections.abc import Sequence

import numpy as np

Cell = tuple[int, int]
DOUBLE_T = (
    "#############",
    "#############",
    "# ######### #",
    "# ######### #",
    "# ######### #",
    "#           #",
    "# #### #### #",
    "# #### #### #",
    "# ####G#### #",
    "#############",
)
"""A bar with a T at either end, and a stem in its middle, at whose end the goal is."""
WALL, GOAL = "#", "G"


def cells_of(drawing: Sequence[str], name: str) -> tuple[list[Cell], int]:
    """Row and column of the cells that are free, and the number of the goal among them.

    Args:
        drawing: rows of the same length, with walls all around.
        name: of the task, for errors.

    Raises:
        ValueError: rows differ in length, the edge is open, there is not one goal, or a cell from
            which there is no way to it, or nothing but the goal.
    """
    rows = [list(row) for row in drawing]
    if len({len(row) for row in rows}) != 1 or len(rows) < 3 or not rows[0]:
        raise _bad(name, "three or more rows of the same length", drawing)
    edge = [*rows[0], *rows[-1], *(char for row in rows for char in (row[0], row[-1]))]
    if {*edge} != {WALL}:
        raise _bad(name, f"walls ({WALL}) all around", drawing)
    cells = [(r, c) for r, row in enumerate(rows) for c, char in enumerate(row) if char != WALL]
    goals = [at for at, (r, c) in enumerate(cells) if rows[r][c] == GOAL]
    if len(goals) != 1 or len(cells) < 2:
        raise _bad(name, f"one goal ({GOAL}) and other cells", drawing)
    if len(_reached({*cells}, cells[goals[0]])) < len(cells):
        raise _bad(name, "a way to the goal from each cell", drawing)
    return cells, goals[0]


def _bad(name: str, expected: str, drawing: Sequence[str]) -> ValueError:
    return ValueError(f"maze of {name}: expected {expected}; got {list(drawing)!r}. Draw it again.")


def _reached(free: set[Cell], start: Cell) -> set[Cell]:
    found, waiting = {start}, [start]
    for row, column in waiting:  # grows on the way
        near = {(row, column - 1), (row - 1, column), (row, column + 1), (row + 1, column)}
        waiting += (fresh := sorted(near & free - found))
        found.update(fresh)
    return found


def carved(rows: int, columns: int, seed: int) -> tuple[str, ...]:
    """A maze without loops by depth-first search, its goal in a cell drawn from all.

    Args:
        rows, columns: of the drawing, walls around included; at least 5.
        seed: of what is drawn.
    """
    rng = np.random.default_rng(seed)
    free = np.zeros((rows, columns), bool)
    free[1, 1] = True
    trail = [(1, 1)]
    while trail:
        row, column = trail[-1]
        near = [(row + 2 * down, column + 2 * right) for down, right in _ROUND]
        open_to = [(r, c) for r, c in near if 0 < r < rows - 1 and 0 < c < columns - 1]
        fresh = [cell for cell in open_to if not free[cell]]
        if not fresh:
            trail.pop()
            continue
        there = fresh[int(rng.integers(len(fresh)))]
        free[(row + there[0]) // 2, (column + there[1]) // 2] = free[there] = True
        trail.append(there)
    chars = np.where(free, " ", WALL)
    cells = np.argwhere(free)
    chars[tuple(cells[rng.integers(len(cells))])] = GOAL
    return tuple("".join(row) for row in chars)


_ROUND = ((0, -1), (-1, 0), (0, 1), (1, 0))
