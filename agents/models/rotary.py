"""Rotary positions: attention by distances."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

BASE = 10_000.0
"""As in the paper."""


class Angles(NamedTuple):
    """Cosines and sines of positions, each (n, 1, 1, hs / 2)."""

    cos: Tensor
    sin: Tensor


class Rotary(nn.Module):
    """Angles by which queries and keys are turned, of positions (Su et al. 2021, RoFormer).

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

    def forward(self, positions: Tensor | slice) -> Angles:
        return Angles(self.cos[positions], self.sin[positions])


def turned(heads: Tensor, angles: Angles) -> Tensor:
    """Heads (..., n, 3, nh, hs) with q and k turned by the angles of n tokens."""
    rotated, values = heads.split([2, 1], -3)
    first, second = rotated.chunk(2, -1)
    pairs = first * angles.cos - second * angles.sin, second * angles.cos + first * angles.sin
    return torch.cat([torch.cat(pairs, -1).to(heads.dtype), values], -3)
