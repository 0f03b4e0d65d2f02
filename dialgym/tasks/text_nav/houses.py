"""Houses made of a seed: rooms on a grid, ways and closed doors between them, and an errand."""

from dataclasses import dataclass

import numpy as np

Cell = tuple[int, int]
SIDES = ("north", "east", "south", "west")
STEPS = ((-1, 0), (0, 1), (1, 0), (0, -1))
GRID = (3, 4)
ROOMS = {
    "hall": "mirror", "kitchen": "stove", "pantry": "shelf", "study": "desk",
    "bedroom": "wardrobe", "bathroom": "basin", "attic": "trunk", "cellar": "barrel",
    "garden": "bench", "garage": "bicycle", "library": "globe", "balcony": "flowerpot",
}  # fmt: skip
"""Rooms, and what stands in each."""
ERRANDS = {
    "apple": "eat", "letter": "read", "violin": "play", "lamp": "light",
    "coat": "wear", "puzzle": "solve", "tea": "drink", "clock": "wind",
}  # fmt: skip
"""Things, and what one does with them."""


@dataclass(frozen=True)
class House:
    """A house of R rooms.

    Attributes:
        rooms: (R,) names.
        cells: (R,) row and column of each.
        ways: (R, 4) the room that is on each of the `SIDES`, -1 for none.
        doors: (R, 4) the number of the door there, -1 for none; all are closed at first.
        thing, verb: what is to be found, and what is to be done with it.
        goal: the room in which to do it.
    """

    rooms: tuple[str, ...]
    cells: tuple[Cell, ...]
    ways: tuple[tuple[int, ...], ...]
    doors: tuple[tuple[int, ...], ...]
    thing: str
    verb: str
    goal: int

    @property
    def door_count(self) -> int:
        """Number of doors."""
        return 1 + max(max(row) for row in self.doors)


def build(seed: int, rooms: int, doors: int) -> House:
    """Build a house of a seed: all rooms can be reached, by one way or two.

    Args:
        seed: of all that is drawn.
        rooms: how many, from 2 to 12.
        doors: how many of the ways are closed by a door, as far as there are ways.
    """
    rng = np.random.default_rng(seed)
    cells = [(int(rng.integers(GRID[0])), int(rng.integers(GRID[1])))]
    while len(cells) < rooms:
        row, column = cells[int(rng.integers(len(cells)))]
        down, right = STEPS[int(rng.integers(4))]
        there = row + down, column + right
        if there not in cells and 0 <= there[0] < GRID[0] and 0 <= there[1] < GRID[1]:
            cells.append(there)
    edges = _edges(cells, rng)
    closed = {edges[i]: n for n, i in enumerate(rng.permutation(len(edges))[:doors].tolist())}
    ways, locks = [[-1] * 4 for _ in cells], [[-1] * 4 for _ in cells]
    for first, second, side in edges:
        for room, other, at in ((first, second, side), (second, first, (side + 2) % 4)):
            ways[room][at], locks[room][at] = other, closed.get((first, second, side), -1)
    names = rng.permutation([*ROOMS])[:rooms].tolist()
    thing = [*ERRANDS][int(rng.integers(len(ERRANDS)))]
    return House(
        tuple(names),
        tuple(cells),
        tuple(map(tuple, ways)),
        tuple(map(tuple, locks)),
        thing,
        ERRANDS[thing],
        int(rng.integers(rooms)),
    )


def _edges(cells: list[Cell], rng: np.random.Generator) -> list[tuple[int, int, int]]:
    """Rooms that a way joins, and the side of the first; a tree, and half of the other neighbours.

    Each room comes after one beside which it was built.
    """
    found = []
    for room, (row, column) in enumerate(cells):
        near = [(cells[:room].index(c), side) for side, (down, right) in enumerate(STEPS)
                if (c := (row + down, column + right)) in cells[:room]]  # fmt: skip
        kept = int(rng.integers(len(near))) if near else 0
        found += [
            (other, room, (side + 2) % 4)
            for at, (other, side) in enumerate(near)
            if at == kept or rng.random() < 0.5
        ]
    return found
