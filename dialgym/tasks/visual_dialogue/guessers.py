"""Guessers: what ranks the images of a pool by a dialogue about one of them."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from dialgym.tasks.visual_dialogue.pool import ROOM, Pool, make_part


class Held(NamedTuple):
    """A dialogue as a guesser sees it, and of which image it is."""

    caption: str
    history: tuple[tuple[str, str], ...]  # (question, answer), oldest first
    image: int  # the true one's place in the pool


@runtime_checkable
class ImageGuesser(Protocol):
    """Ranks the images of its pool by what is said of one of them. It may keep what it has seen
    of a dialogue, but its answer depends on `dialogues` alone.

    With a second method, ``imagine(dialogues)``, it gives (m, F) float32 from -1 to 1: the features
    that it takes the image to have. They are what the questioner is given beside the transcript.
    """

    def percentiles(self, dialogues: Sequence[Held]) -> np.ndarray:
        """(m,) float64 in [0, 1]: the percentile rank of the true image after each dialogue.

        It is ``1 - rank / len(pool)``, where rank 0 is the best.
        """
        ...


GUESSERS = {
    "cached": f"{ROOM}.cached:CachedGuesser",
    "exact": f"{ROOM}.exact:ExactGuesser",
    "learned": f"{ROOM}.learned:LearnedGuesser",
    "remote": f"{ROOM}.remote:RemoteGuesser",
    "words": f"{ROOM}.retrieval:WordGuesser",
}
"""Guessers by name, each made as ``Class(pool)``, or ``Class(pool, ARGUMENT)`` for a name that is
followed by a colon and an argument: ``cached:PATH``, ``learned:PATH``, ``remote:URL``."""


def make_guesser(spec: Any, pool: Pool) -> ImageGuesser:
    """The guesser of a setting: a name of `GUESSERS`, a mapping of it and settings, or an object.

    Raises:
        ValueError: there is no such guesser, or it is not for this pool.
    """
    if isinstance(spec, ImageGuesser):
        return spec
    where = (
        "VisualDialogue ('exact', 'learned:PATH', 'remote:URL', 'cached:PATH', or an object with "
        "percentiles(dialogues))"
    )
    guesser: ImageGuesser = make_part("guesser", spec, None, GUESSERS, where, pool)
    return guesser


def percentile_ranks(scores: np.ndarray, images: np.ndarray, tolerance: float = 0.0) -> np.ndarray:
    """(m,) the percentile rank of an image by each row of scores (m, n), the higher the better.

    Images of the same score, up to a relative `tolerance`, share the mean of their ranks, which is
    the expected rank if ties are broken at random.
    """
    own = scores[np.arange(len(images)), images][:, None]
    slack = tolerance * np.abs(own)
    above = (scores > own + slack).sum(1)
    alike = (scores >= own - slack).sum(1) - above - 1
    ranks: np.ndarray = 1.0 - (above + alike / 2) / scores.shape[1]
    return ranks


def by_distance(predicted: np.ndarray, features: np.ndarray, images: np.ndarray) -> np.ndarray:
    """(m,) percentile ranks of images by squared distance.

    Args:
        predicted: (m, F) what is said to be an image's features.
        features: (n, F) those of the pool, rows of length 1.
        images: (m,) int64, the true ones.
    """
    # |p - f|^2 = |p|^2 - 2 p f + 1: the nearest is the one with the largest product
    return percentile_ranks(predicted @ features.T, images)
