"""How near a reply is in meaning, by sentence embeddings."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from dialgym.errors import one_of
from dialgym.optional import require
from dialgym.rewards.base import Reply, Reward
from dialgym.rewards.lru import LRU
from dialgym.rewards.overlap import references

KEPT = 2**14  # embeddings


@dataclass(frozen=True, kw_only=True)
class Similarity(Reward):
    """The cosine of sentence embeddings, Reimers and Gurevych (2019), of the nearest text.

    Attributes:
        model: a folder, or a name on the Hugging Face hub, of sentence-transformers.
        to: ``references``, or ``context``: the last utterance before the reply.
        device: where the model runs; ``auto`` is CUDA where there is one.
        batch_size: texts of one call of the model.
    """

    name: ClassVar[str] = "similarity"
    bounds = (-1.0, 1.0)
    model: str = "sentence-transformers/all-MiniLM-L6-v2"
    to: str = "references"
    device: str = "auto"
    batch_size: int = 32

    def __post_init__(self) -> None:
        one_of("to", self.to, ("references", "context"), "reward 'similarity'")

    def score(self, replies: Sequence[Reply]) -> np.ndarray:
        """Scores (k,) from -1 to 1; 0 where nothing was said before.

        Raises:
            ValueError: a reply has no references, where those are asked for.
        """
        others = [self._others(reply) for reply in replies]
        texts = [text for reply, those in zip(replies, others) for text in (reply.text, *those)]
        rows = self._embeddings.get_many(texts, lambda new: self._embed([texts[i] for i in new]))
        table = dict(zip(texts, rows))
        cosines = [
            max((float(table[reply.text] @ table[text]) for text in those), default=0.0)
            for reply, those in zip(replies, others)
        ]
        return np.clip(np.array(cosines, np.float64), *self.bounds)

    def _others(self, reply: Reply) -> Sequence[str]:
        return references(reply, self.name) if self.to == "references" else reply.context[-1:]

    def _embed(self, texts: list[str]) -> Sequence[np.ndarray]:
        """Embeddings of length 1, float64."""
        rows = self._encoder.encode(
            texts, batch_size=self.batch_size, convert_to_numpy=True, show_progress_bar=False
        ).astype(np.float64)
        return list(rows / np.linalg.norm(rows, axis=1, keepdims=True).clip(1e-12))

    @cached_property
    def _embeddings(self) -> LRU[np.ndarray]:
        return LRU(KEPT)

    @cached_property
    def _encoder(self) -> Any:
        package = require("sentence_transformers", "rewards", "reward 'similarity'")
        device = None if self.device == "auto" else self.device
        try:
            return package.SentenceTransformer(self.model, device=device)
        except Exception as error:  # broken weights have errors of their own
            raise ValueError(
                f"reward 'similarity' could not load the model {self.model!r}: expected a folder "
                f"or the hub's name of sentence-transformers; {' '.join(str(error).split())}"
            ) from error
