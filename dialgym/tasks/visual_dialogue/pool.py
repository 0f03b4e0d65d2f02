"""The images that may be hidden: what they have in common, and generated scenes."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from dialgym.errors import one_of, unknown, whole_number, with_settings
from dialgym.tasks.lookup import find_object
from dialgym.tasks.visual_dialogue import scenes as generated
from dialgym.tasks.visual_dialogue.captions import article, captions
from dialgym.tasks.visual_dialogue.scenes import GROUNDS, SPLITS, TIMES, Scenes, Thing

ROOM = "dialgym.tasks.visual_dialogue"
POOLS = {"scenes": f"{ROOM}.pool:SceneBook", "visdial": f"{ROOM}.visdial:VisDialPool"}
"""Pools by name; a name may be followed by a colon and the first argument: ``visdial:PATH``."""
ADJECTIVES = {"wood": "wooden", "metal": "metal", "glass": "glass"}
"""What something is called that is made of a material."""


class Pool:
    """The images that may be hidden. A subclass has `features` and `captions`, and may have more.

    Attributes:
        features: (n, F) float32, rows of length 1.
        captions: (n,) what both parties are told of each image.
    """

    features: np.ndarray
    captions: Sequence[str]

    def __len__(self) -> int:
        return len(self.captions)

    def description(self, image: int) -> str:
        """What the answerer is told of an image in words, in private; nothing where it is empty."""
        return ""

    @property
    def longest_description(self) -> int:
        """Characters of the longest description."""
        return max(len(self.description(i)) for i in range(len(self)))

    def picture(self, image: int) -> np.ndarray | None:
        """(H, W, 3) uint8, or None where there is no picture."""
        return None


class SceneBook(Pool):
    """Generated scenes: two to five toys on the ground, by day or night.

    Args:
        scenes: how many; None for all of the split (train 3,000, validation 1,000, test 1,000).
        split: ``train``, ``validation`` or ``test``: they share no scene.
        seed: another seed gives other scenes.

    Raises:
        ValueError: there is no such split, or it has fewer scenes.
    """

    def __init__(self, scenes: int | None = 1000, split: str = "train", seed: int = 0) -> None:
        one_of("split", split, SPLITS, "SceneBook")
        start, stop = SPLITS[split]
        if scenes is not None:
            whole_number("scenes", scenes, f"SceneBook, split {split!r},", 2, stop - start)
            stop = start + scenes
        whole_number("seed", seed, "SceneBook", 0)
        self.split, self.seed, self._range = split, seed, (start, stop)

    def __len__(self) -> int:
        return self._range[1] - self._range[0]

    @cached_property
    def scenes(self) -> Scenes:
        """The scenes as arrays; not to be written into."""
        return generated.generate(self.seed).part(*self._range)

    @cached_property
    def features(self) -> np.ndarray:  # type: ignore[override]
        return generated.features(self.scenes)

    @cached_property
    def captions(self) -> Sequence[str]:  # type: ignore[override]
        return captions(self.scenes)

    def description(self, image: int) -> str:
        """All there is in a scene, from the back left to the front right."""
        told = ", ".join(described(thing) for thing in self.scenes.things(image))
        return f"{self.setting(image)}: {told}"

    @property
    def longest_description(self) -> int:
        most = [max(map(len, values)) for values in generated.ATTRIBUTES.values()]
        thing = sum(most) + len(" " * 4 + "n at the front middle")
        return len("night on grass:") + generated.MOST * (thing + len(", ") + 1)

    def setting(self, image: int) -> str:
        """Time of day and ground: ``night on sand``."""
        return f"{TIMES[self.scenes.time[image]]} on {GROUNDS[self.scenes.ground[image]]}"

    def picture(self, image: int) -> np.ndarray:
        from dialgym.tasks.visual_dialogue.drawing import draw_scene

        return draw_scene(self, image)

    def __getstate__(self) -> dict[str, Any]:
        """Without the scenes, which the other process generates."""
        left_out = ("scenes", "features", "captions")
        return {name: value for name, value in self.__dict__.items() if name not in left_out}


def described(thing: Thing) -> str:
    """A thing with all it has: ``a small red wooden ball at the back left``."""
    material = ADJECTIVES[thing.material]
    what = article(f"{thing.size} {thing.colour} {material} {thing.category}")
    return f"{what} at the {thing.row} {thing.column}"


def make_pool(spec: Any = None) -> Pool:
    """The pool of a setting.

    Args:
        spec: None for `SceneBook`; a name of `POOLS`, also with a first argument after a colon;
            a mapping of ``name`` and settings, ``{"name": "scenes", "split": "test"}``; or a
            `Pool`.

    Raises:
        ValueError: there is no such pool, or it has no such setting.
    """
    if isinstance(spec, Pool):
        return spec
    settings = dict(spec) if isinstance(spec, Mapping) else {"name": spec or "scenes"}
    name, colon, argument = str(settings.pop("name", "scenes")).partition(":")
    if name not in POOLS:
        raise unknown("pool", name, POOLS, "VisualDialogue (a name, a mapping of it, or a Pool)")
    make = find_object(POOLS[name], "pool")
    if colon:
        return make(argument, **settings)  # type: ignore[no-any-return]
    return with_settings(make, f"pool {name!r} of VisualDialogue", settings)  # type: ignore[no-any-return]
