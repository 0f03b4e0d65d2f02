"""Generated scenes: toys on the ground, as arrays of many scenes at once."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from dialgym.tasks.briefs import listed

CATEGORIES = ("ball", "block", "cone", "star", "ring", "cup", "boat", "house")
COLOURS = ("red", "orange", "yellow", "green", "blue", "purple")
SIZES = ("small", "large")
MATERIALS = ("wood", "metal", "glass")
ROWS = ("back", "front")
COLUMNS = ("left", "middle", "right")
GROUNDS = ("grass", "sand", "snow")
TIMES = ("day", "night")
CELLS = tuple((row, column) for row in ROWS for column in COLUMNS)
"""Cells for objects; each holds one at most."""
MOST = 5
"""Most objects of a scene; the fewest are 2."""
ALIKE = 0.3
"""Share of objects of the category of the first, so that there is something to count."""
SPLITS = {"train": (0, 3000), "validation": (3000, 4000), "test": (4000, 5000)}
"""Ranges of the scenes of a seed, by split."""

ATTRIBUTES = {
    "category": CATEGORIES,
    "colour": COLOURS,
    "size": SIZES,
    "material": MATERIALS,
}
"""The values of what each object has."""
ABOUT = (
    f"In a picture there are 2 to {MOST} toys, at the back or the front, on the left, in the "
    f"middle or on the right. Each is a {listed(CATEGORIES, 'or')}, {listed(SIZES, 'or')}, "
    f"{listed(COLOURS, 'or')}, and of {listed(MATERIALS, 'or')}. They stand on "
    f"{listed(GROUNDS, 'or')}, by {listed(TIMES, 'or')}."
)
"""A sentence on what can be in a scene."""


class Thing(NamedTuple):
    """An object of a scene."""

    category: str
    colour: str
    size: str
    material: str
    row: str
    column: str


class Scenes(NamedTuple):
    """n scenes. What stands in cell c of scene i has the attributes [i, c]; -1 where none does."""

    category: np.ndarray  # (n, 6) int8, into CATEGORIES
    colour: np.ndarray  # (n, 6) int8
    size: np.ndarray  # (n, 6) int8
    material: np.ndarray  # (n, 6) int8
    ground: np.ndarray  # (n,) int8, into GROUNDS
    time: np.ndarray  # (n,) int8, into TIMES
    told: np.ndarray  # (n, 2) float64 in [0, 1), what is drawn of it for the caption

    def part(self, start: int, stop: int) -> "Scenes":
        """The scenes from `start` to before `stop`."""
        return Scenes(*[array[start:stop] for array in self])

    def things(self, scene: int) -> list[Thing]:
        """The objects of a scene, from the back left to the front right."""
        return [
            Thing(
                CATEGORIES[self.category[scene, cell]],
                COLOURS[self.colour[scene, cell]],
                SIZES[self.size[scene, cell]],
                MATERIALS[self.material[scene, cell]],
                *CELLS[cell],
            )
            for cell in np.flatnonzero(self.category[scene] >= 0).tolist()
        ]


@lru_cache(maxsize=4)
def generate(seed: int) -> Scenes:
    """All scenes of a seed, those of the three splits one after another; no two are alike.

    The arrays are shared: nobody may write into them.
    """
    rng = np.random.default_rng(seed)
    wanted = max(stop for _, stop in SPLITS.values())
    drawn = _draw(rng, wanted + wanted // 10)
    rows = np.concatenate([np.stack(drawn[:4], 1).reshape(len(drawn.ground), -1),
                           np.stack(drawn[4:6], 1)], 1)  # fmt: skip
    first = np.sort(np.unique(rows, axis=0, return_index=True)[1])[:wanted]
    scenes = Scenes(*[array[first] for array in drawn])
    for array in scenes:
        array.flags.writeable = False
    return scenes


def _draw(rng: np.random.Generator, n: int) -> Scenes:
    counts = rng.integers(2, MOST + 1, n)
    order = rng.random((n, len(CELLS))).argsort(1)  # the first `counts` cells of each are taken
    taken = order.argsort(1) < counts[:, None]
    drawn = [rng.integers(len(values), size=(n, len(CELLS))) for values in ATTRIBUTES.values()]
    same = rng.random((n, len(CELLS))) < ALIKE
    drawn[0] = np.where(same, drawn[0][np.arange(n), order[:, 0]][:, None], drawn[0])
    category, colour, size, material = [np.where(taken, v, -1).astype(np.int8) for v in drawn]
    ground = rng.integers(len(GROUNDS), size=n).astype(np.int8)
    time = rng.integers(len(TIMES), size=n).astype(np.int8)
    return Scenes(category, colour, size, material, ground, time, rng.random((n, 2)))


def features(scenes: Scenes) -> np.ndarray:
    """(n, F) float32, rows of length 1: how many objects there are of each kind and place.

    In order: of each category, colour, size and material; of each colour and category, of each
    category and cell; which ground, which time of day.
    """
    there = scenes.category >= 0
    one_hot = {
        name: (getattr(scenes, name)[..., None] == np.arange(len(values))).astype(np.float32)
        for name, values in ATTRIBUTES.items()
    }  # (n, 6, values)
    parts = [one_hot[name].sum(1) for name in ATTRIBUTES]
    pairs = np.einsum("ncx,ncy->nxy", one_hot["colour"], one_hot["category"])
    placed = one_hot["category"].transpose(0, 2, 1)
    parts += [pairs.reshape(len(there), -1), placed.reshape(len(there), -1)]
    for values, names in ((scenes.ground, GROUNDS), (scenes.time, TIMES)):
        parts.append((values[:, None] == np.arange(len(names))).astype(np.float32))
    joined = np.concatenate(parts, 1)
    normed: np.ndarray = joined / np.linalg.norm(joined, axis=1, keepdims=True)
    return normed.astype(np.float32)
