"""The exact guesser: Bayes' rule over generated scenes."""

from collections import OrderedDict
from collections.abc import Sequence

import numpy as np

from dialgym.tasks.visual_dialogue.captions import caption_likelihood
from dialgym.tasks.visual_dialogue.guessers import Held, percentile_ranks
from dialgym.tasks.visual_dialogue.pool import Pool, scene_book
from dialgym.tasks.visual_dialogue.understanding import parse

KEPT = 512
"""Dialogues whose posterior is kept, the ones used last."""
ALIKE = 1e-9
"""Relative difference up to which two probabilities are a tie: they were multiplied in turns."""

History = Sequence[tuple[str, str]]
Kept = OrderedDict[tuple[str, tuple[tuple[str, str], ...]], np.ndarray]


class ExactGuesser:
    """Ranks scenes by their posterior, given the caption and all answers.

    The prior is uniform; what the rule answerer may say of each scene, and how likely, is known
    (`answers.py`), and so is how a caption is made. An answer that the rules would not give to its
    question of any scene that is still possible tells nothing, as does the answer to a question
    that they do not understand.

    Raises:
        ValueError: the pool is none of generated scenes.
    """

    def __init__(self, pool: Pool) -> None:
        self.book = scene_book(pool, "guesser 'exact'", "'learned:PATH' or 'remote:URL'")
        self._kept: Kept = OrderedDict()
        self._ranks: Kept = OrderedDict()

    def percentiles(self, dialogues: Sequence[Held]) -> np.ndarray:
        """See `Guesser`; scenes as likely as the true one share the mean of their ranks."""
        scores = np.stack([self.posterior(held.caption, held.history) for held in dialogues])
        images = np.array([held.image for held in dialogues])
        return percentile_ranks(scores, images, ALIKE)

    def imagine(self, dialogues: Sequence[Held]) -> np.ndarray:
        """(m, F) float32: the mean of the features of all scenes, by their posterior."""
        features = self.book.features
        found = [self.posterior(held.caption, held.history) @ features for held in dialogues]
        return np.array(found, np.float32)

    def posterior(self, caption: str, history: History) -> np.ndarray:
        """(n,) float64, sums to 1: how likely each scene is; not to be written into."""
        key = (caption, tuple(history))
        found = self._kept.get(key)
        if found is None:
            found = self._kept[key] = self._update(caption, key[1])
            if len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        else:
            self._kept.move_to_end(key)
        return found

    def percentiles_of_all(self, caption: str, history: History) -> np.ndarray:
        """(n,) float64: the percentile rank that each scene would have if it were the true one."""
        key = (caption, tuple(history))
        if key not in self._ranks:
            self._ranks[key] = _ranks(self.posterior(caption, history))
            if len(self._ranks) > KEPT:
                self._ranks.popitem(last=False)
        return self._ranks[key]

    def _update(self, caption: str, history: tuple[tuple[str, str], ...]) -> np.ndarray:
        if not history:
            return _normed(caption_likelihood(self.book.scenes, caption), np.ones(len(self.book)))
        before = self.posterior(caption, history[:-1])
        said, answer = history[-1]
        question = parse(said)
        if question is None:
            return before
        likelihood = self.book.answers.answers(question).likelihood(answer)
        return before if likelihood is None else _normed(before * likelihood, before)

    def __getstate__(self) -> dict[str, object]:
        """Without what is kept."""
        return {"book": self.book, "_kept": OrderedDict(), "_ranks": OrderedDict()}


def _ranks(p: np.ndarray) -> np.ndarray:
    """Percentile rank of each image in turn, by `percentile_ranks`."""
    ascending = np.sort(p)
    below = np.searchsorted(ascending, p * (1 - ALIKE), side="left")
    up_to = np.searchsorted(ascending, p * (1 + ALIKE), side="right")
    above, alike = len(p) - up_to, up_to - below - 1
    ranks: np.ndarray = 1.0 - (above + alike / 2) / len(p)
    return ranks


def _normed(weights: np.ndarray, otherwise: np.ndarray) -> np.ndarray:
    """The weights over their sum; the other ones where all are 0."""
    total = weights.sum()
    return weights / total if total > 0 else otherwise / otherwise.sum()
