"""KV cache of a rollout, kept between steps and used where the observations still match it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from agents.models.backbone import Backbone
from agents.models.cache import computing_dtype, likeness, packed, to_device, weights_version
from agents.models.observations import Observed

CPU_TOKENS, GPU_TOKENS = 2048, 65536
"""Most tokens that are read at once. On a CPU more fall out of its caches."""

Embed = Callable[[Tensor], Tensor]
"""From features (b, F) to what is added to the embeddings of their rows' tokens, (b, d)."""


class RolloutCache:
    """Sequences seen last, one a row, with their keys and values.

    Row i is compared with row i of the next batch: what they share from the start is reused,
    the rest is computed. So a reset, an episode in between or another env at the same row costs
    time and never correctness. Comparing is done on the host: only new tokens go to the device.
    """

    def __init__(self, backbone: Backbone, rows: int, embed: Embed | None = None) -> None:
        self.backbone, self.embed = backbone, embed
        self.kv = backbone.new_cache(rows)
        self.device = self.kv.keys.device
        self.max_tokens = CPU_TOKENS if self.device.type == "cpu" else GPU_TOKENS
        self.tokens = np.zeros((rows, backbone.window), np.int64)
        self.features: np.ndarray | None = None  # (rows, F)
        self.computed = 0  # tokens that went through the model, ever

    def read(self, seen: Observed) -> Tensor:
        """Hidden state (b, d) at the end of each row of observations. No gradients."""
        rows = np.arange(len(self.tokens)) if seen.rows is None else seen.rows
        at: Any = slice(None) if seen.rows is None else seen.rows  # a view where it can be
        tokens, bias = seen.tokens.numpy(), None
        self.kv.lengths[at] = np.minimum(self._shared(at, tokens), seen.lengths - 1)
        if seen.features is not None:
            assert self.embed is not None
            self._keep_features(rows, seen.features.numpy())
            bias = self.embed(to_device(seen.features.numpy(), self.device))
        self.tokens[at, : tokens.shape[1]] = tokens
        known = self.kv.lengths[at]
        counts = seen.lengths - known
        self.computed += int(counts.sum())
        hidden = torch.empty(len(counts), self.backbone.width, device=self.device)
        for chunk in self._chunks(known.copy(), counts):
            index = to_device(chunk, self.device)
            hidden[index] = self._read(
                rows[chunk], counts[chunk], None if bias is None else bias[index]
            )
        return hidden

    def _shared(self, rows: Any, tokens: np.ndarray) -> np.ndarray:
        """Number (b,) of the tokens (b, L) that each of the `rows` (b,) shares with the cache."""
        differs = self.tokens[rows, : tokens.shape[1]] != tokens
        same = np.where(differs.any(1), differs.argmax(1), tokens.shape[1])
        return np.minimum(same, self.kv.lengths[rows])

    def _keep_features(self, rows: np.ndarray, features: np.ndarray) -> None:
        """Keep the features (b, F); what was cached with other ones is void."""
        if self.features is None:
            self.features = np.full((len(self.tokens), features.shape[1]), np.nan, np.float32)
        changed = (self.features[rows] != features).any(1)
        self.kv.lengths[rows[changed]] = 0
        self.features[rows] = features

    def _chunks(self, known: np.ndarray, counts: np.ndarray) -> Iterator[np.ndarray]:
        """Rows to read at once: those that add `counts` (b,) to `known` (b,) alike side by side."""
        order = np.argsort(likeness(known, counts), kind="stable")
        before = counts[order].cumsum() - counts[order]
        number = -(-int(counts.sum()) // self.max_tokens)
        chunk = before * number // int(counts.sum())
        yield from np.split(order, np.flatnonzero(np.diff(chunk)) + 1)

    def _read(self, rows: np.ndarray, counts: np.ndarray, bias: Tensor | None) -> Tensor:
        """Extend `rows` by their next `counts` tokens; hidden states (b, d) of the last ones."""
        owner, places = packed(self.kv.lengths[rows], counts)
        new = to_device(self.tokens[rows[owner], places], self.device)
        if bias is None:
            return self.backbone.extend(new, counts, self.kv, rows)
        more = bias[to_device(owner, self.device)]
        return self.backbone.extend(new, counts, self.kv, rows, more)


class RolloutCaches:
    """A `RolloutCache` for each batch size and precision in use, so that evaluation leaves
    training's alone.

    Everything is forgotten at the next reading when `version` (whatever identifies the weights) has
    changed; None makes it so.
    """

    def __init__(self, backbone: Backbone, embed: Embed | None = None, capacity: int = 3) -> None:
        self.backbone, self.embed = backbone, embed
        self.capacity = capacity
        self.caches: OrderedDict[tuple[int, torch.dtype], RolloutCache] = OrderedDict()
        self.version: Hashable = None

    def read(self, seen: Observed) -> Tensor:
        """Hidden state (b, d) at the end of each row of observations, by the current weights."""
        version: Hashable = weights_version(self.backbone)
        if isinstance(self.embed, torch.nn.Module):
            version = version, tuple(p._version for p in self.embed.parameters())
        if version != self.version:
            self.forget()
            self.version = version
        return self._get(seen.total).read(seen)

    def forget(self) -> None:
        """Call when the weights changed: nothing cached is valid any more."""
        for cache in self.caches.values():
            cache.kv.reset()
        self.version = None

    def _get(self, rows: int) -> RolloutCache:
        key = rows, computing_dtype(self.backbone.embedding)
        if key not in self.caches:
            self.caches[key] = RolloutCache(self.backbone, rows, self.embed)
        self.caches.move_to_end(key)
        while len(self.caches) > self.capacity:
            self.caches.popitem(last=False)
        return self.caches[key]
