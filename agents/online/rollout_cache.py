"""The KV cache of a rollout: kept between steps, trusted only where the tokens agree."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable

import torch
from torch import Tensor

from agents.models.backbone import Backbone
from agents.online.prefixes import buckets, lengths_of


class RolloutCache:
    """Sequences seen last, one a row, with their keys and values.

    Row i is compared with row i of the next batch: what they share from the start is reused,
    the rest is computed. So a reset, an episode in between or another env at the same row costs
    time and never correctness.
    """

    def __init__(self, backbone: Backbone, rows: int) -> None:
        self.backbone = backbone
        self.kv = backbone.new_cache(rows)
        device = self.kv.lengths.device
        self.tokens = torch.zeros(rows, backbone.window, dtype=torch.int64, device=device)
        self.computed = 0  # tokens that went through the model, ever

    def last_hidden(self, tokens: Tensor) -> Tensor:
        """Hidden state (B, d) at the end of each row of `tokens` (B, L). No gradients."""
        lengths = lengths_of(tokens)
        self.kv.lengths = torch.minimum(self._shared(tokens), lengths - 1)
        counts = lengths - self.kv.lengths
        self.tokens[:, : tokens.shape[1]] = tokens
        self.computed += int(counts.sum())
        return self._extend(counts)

    def _shared(self, tokens: Tensor) -> Tensor:
        """How many tokens each row (B, L) has in common with what is cached."""
        differs = self.tokens[:, : tokens.shape[1]] != tokens
        first = differs.int().argmax(1)
        same = torch.where(differs.any(1), first, tokens.shape[1])
        return torch.minimum(same, self.kv.lengths)

    def _extend(self, counts: Tensor) -> Tensor:
        """Read `counts` (B,) new tokens a row, rows with about as many of them together."""
        hidden = torch.empty(len(counts), self.backbone.width, device=counts.device)
        ends = counts.cpu().numpy()
        for rows in buckets(ends, ratio=0.5):
            index = torch.from_numpy(rows).to(counts.device)
            longest = int(ends[rows[0]])
            if len(rows) == len(ends):
                return self._read(counts, longest, None)
            if longest == 1 and 2 * len(rows) > len(ends):
                # A pass over all rows, idle ones included, is cheaper than a copy of the cache.
                one = torch.zeros_like(counts).index_fill_(0, index, 1)
                hidden[index] = self._read(one, 1, None)[index]
            else:
                hidden[index] = self._read(counts[index], longest, index)
        return hidden

    def _read(self, counts: Tensor, longest: int, rows: Tensor | None) -> Tensor:
        """Extend `rows` by their next `counts` tokens; hidden states (b, d) of the last ones."""
        known = self.kv.lengths if rows is None else self.kv.lengths[rows]
        step = torch.arange(longest, device=counts.device)
        at = (known[:, None] + step).clamp(max=self.tokens.shape[1] - 1)  # (b, k)
        source = self.tokens if rows is None else self.tokens[rows]
        states = self.backbone.extend(source.gather(1, at), counts, self.kv, rows)
        last = (counts - 1).clamp(min=0)
        return states[torch.arange(len(counts), device=counts.device), last]


class RolloutCaches:
    """A `RolloutCache` for each batch size in use, so that evaluation leaves training's alone.

    Everything is forgotten when `version` (whatever identifies the weights) changes.
    """

    def __init__(self, backbone: Backbone, kept: int = 3) -> None:
        self.backbone = backbone
        self.kept = kept
        self.caches: OrderedDict[int, RolloutCache] = OrderedDict()
        self.version: Hashable = None

    def last_hidden(self, tokens: Tensor, version: Hashable) -> Tensor:
        """See `RolloutCache.last_hidden`."""
        if version != self.version:
            self.forget()
            self.version = version
        return self._get(len(tokens)).last_hidden(tokens)

    def forget(self) -> None:
        """Call when the weights changed: nothing cached is valid any more."""
        for cache in self.caches.values():
            cache.kv.reset()
        self.version = None

    def _get(self, rows: int) -> RolloutCache:
        if rows not in self.caches:
            self.caches[rows] = RolloutCache(self.backbone, rows)
        self.caches.move_to_end(rows)
        while len(self.caches) > self.kept:
            self.caches.popitem(last=False)
        return self.caches[rows]
