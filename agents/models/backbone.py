"""The protocol of backbones: tokens in, hidden states out."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from torch import Tensor

from agents.models.cache import KVCache


class Backbone(Protocol):
    """A causal language model without its head; any `nn.Module` with these members will do.

    Sequences are left-aligned. What stands to the right of a position never changes its hidden
    state, so padding on the right is harmless and needs no mask.
    """

    width: int  # d, size of a hidden state
    window: int  # longest sequence, in tokens

    @property
    def embedding(self) -> Tensor:
        """Token embeddings (V, d), which a tied policy head shares."""
        ...

    def __call__(
        self, tokens: Tensor, at: Tensor | None = None, bias: Tensor | None = None
    ) -> Tensor:
        """Hidden states of whole sequences of token ids (B, T), T <= window.

        All of them, (B, T, d); or only those at the places `at` (N,) of the flattened (B * T),
        as (N, d), which spares the last layer the rest. A `bias` (B, d) is added to the embedding
        of each token of a row.
        """
        ...

    def new_cache(self, rows: int) -> KVCache:
        """An empty cache for `rows` sequences, on the model's device."""
        ...

    def extend(
        self,
        tokens: Tensor,
        counts: np.ndarray,
        cache: KVCache,
        rows: np.ndarray,
        bias: Tensor | None = None,
    ) -> Tensor:
        """Append new tokens to cached sequences; return the hidden states (b, d) of their ends.

        Args:
            tokens: (n,) new token ids, those of one row after those of another, without padding.
            counts: (b,) int64, how many each row adds, 1 or more; n in all.
            cache: grows by `counts` in place.
            rows: (b,) int64, the cache rows to extend, each once.
            bias: (n, d), added to the embeddings of the new tokens.
        """
        ...
