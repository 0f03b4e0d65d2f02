"""The KV cache of a rollout: kept between steps, trusted only where the tokens agree."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterator

import numpy as np
import torch
from torch import Tensor

from agents.models.backbone import Backbone
from agents.models.cache import computing_dtype, likeness, packed

CPU_TOKENS, GPU_TOKENS = 2048, 65536
"""Most tokens that are read at once. On a CPU more fall out of its caches."""


class RolloutCache:
    """Sequences seen last, one a row, with their keys and values.

    Row i is compared with row i of the next batch: what they share from the start is reused,
    the rest is computed. So a reset, an episode in between or another env at the same row costs
    time and never correctness.
    """

    def __init__(self, backbone: Backbone, rows: int) -> None:
        self.backbone = backbone
        self.kv = backbone.new_cache(rows)
        self.device = self.kv.keys.device
        self.most = CPU_TOKENS if self.device.type == "cpu" else GPU_TOKENS
        self.tokens = np.zeros((rows, backbone.window), np.int64)
        self.computed = 0  # tokens that went through the model, ever

    def last_hidden(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """Hidden state (B, d) at the end of each row of `tokens` (B, L). No gradients.

        `lengths` (B,) are those of the rows, 1 or more.
        """
        rows, ends = tokens.cpu().numpy(), lengths.cpu().numpy()
        self.kv.lengths = np.minimum(self._shared(rows), ends - 1)
        self.tokens[:, : rows.shape[1]] = rows
        counts = ends - self.kv.lengths
        self.computed += int(counts.sum())
        hidden = torch.empty(len(counts), self.backbone.width, device=self.device)
        for chunk in self._chunks(counts):
            hidden[torch.from_numpy(chunk).to(self.device)] = self._read(chunk, counts[chunk])
        return hidden

    def _shared(self, tokens: np.ndarray) -> np.ndarray:
        """How many tokens each row (B, L) has in common with what is cached."""
        differs = self.tokens[:, : tokens.shape[1]] != tokens
        same = np.where(differs.any(1), differs.argmax(1), tokens.shape[1])
        return np.minimum(same, self.kv.lengths)

    def _chunks(self, counts: np.ndarray) -> Iterator[np.ndarray]:
        """Rows to read at once: those that add `counts` (B,) alike are neighbours."""
        order = np.argsort(likeness(self.kv.lengths, counts), kind="stable")
        before = counts[order].cumsum() - counts[order]
        number = -(-int(counts.sum()) // self.most)
        chunk = before * number // int(counts.sum())
        yield from np.split(order, np.flatnonzero(np.diff(chunk)) + 1)

    def _read(self, rows: np.ndarray, counts: np.ndarray) -> Tensor:
        """Extend `rows` by their next `counts` tokens; hidden states (b, d) of the last ones."""
        owner, places = packed(self.kv.lengths[rows], counts)
        new = torch.from_numpy(self.tokens[rows[owner], places]).to(self.device)
        return self.backbone.extend(new, counts, self.kv, rows)


class RolloutCaches:
    """A `RolloutCache` for each batch size and precision in use, so that evaluation leaves
    training's alone.

    Everything is forgotten when `version` (whatever identifies the weights) changes.
    """

    def __init__(self, backbone: Backbone, kept: int = 3) -> None:
        self.backbone = backbone
        self.kept = kept
        self.caches: OrderedDict[tuple[int, torch.dtype], RolloutCache] = OrderedDict()
        self.version: Hashable = None

    def last_hidden(self, tokens: Tensor, lengths: Tensor, version: Hashable) -> Tensor:
        """See `RolloutCache.last_hidden`."""
        if version != self.version:
            self.forget()
            self.version = version
        return self._get(len(tokens)).last_hidden(tokens, lengths)

    def forget(self) -> None:
        """Call when the weights changed: nothing cached is valid any more."""
        for cache in self.caches.values():
            cache.kv.reset()
        self.version = None

    def _get(self, rows: int) -> RolloutCache:
        key = rows, computing_dtype(self.backbone.embedding)
        if key not in self.caches:
            self.caches[key] = RolloutCache(self.backbone, rows)
        self.caches.move_to_end(key)
        while len(self.caches) > self.kept:
            self.caches.popitem(last=False)
        return self.caches[key]
