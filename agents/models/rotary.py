"""Rotary positions: attention by distances."""

from __future__ import annotations

import torch
from torch import Tensor, nn

BASE = 10_000.0
"""As in the paper."""


class Rotary(nn.Module):
    """Queries and keys turned by angles that grow with their positions (Su et al. 2021, RoFormer).

    Entry i of the first half of a head and entry i of the second are a pair, turned by
    position / BASE^(2 i / hs): a product of a query and a key then depends on how far apart the
    two stand, not on where.
    """

    cos: Tensor  # (window, 1, 1, hs / 2)
    sin: Tensor

    def __init__(self, window: int, head_size: int) -> None:
        super().__init__()
        rates = BASE ** (-torch.arange(0, head_size, 2) / head_size)
        angles = torch.arange(window)[:, None, None, None] * rates
        self.register_buffer("cos", angles.cos(), persistent=False)
        self.register_buffer("sin", angles.sin(), persistent=False)

    def forward(self, heads: Tensor, positions: Tensor | slice) -> Tensor:
        """Of heads (..., n, 3, nh, hs) at `positions` (n,), q and k turned, v as it is."""
        turned, values = heads.split([2, 1], -3)
        first, second = turned.chunk(2, -1)
        cos, sin = self.cos[positions], self.sin[positions]
        turned = torch.cat([first * cos - second * sin, second * cos + first * sin], -1)
        return torch.cat([turned.to(heads.dtype), values], -3)
