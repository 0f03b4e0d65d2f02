"""A ragged key-value cache: many sequences, each as long as it happens to be."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from agents.models.lora import adapters_off


@dataclass(frozen=True)
class Slots:
    """Where the new tokens of one `extend` go, and what they may look at."""

    rows: Tensor | None  # (b,) cache rows; None = all of them, in order
    positions: Tensor  # (b, k) place of each new token in its sequence
    targets: Tensor  # (b, k) place it is written to: its position, or the scratch slot
    index: Tensor  # (b, 1) cache row of each batch row
    span: int  # longest sequence after the extension: keys are read up to here
    bias: Tensor  # (b, 1, k, span), 0 where a new token sees a key and -inf where not


class KVCache:
    """Keys and values of `rows` sequences, preallocated, each row with its own length.

    Shapes: `keys` and `values` (n_layer, B, nh, T + 1, hs), `lengths` (B,) int64. A prefix of
    a cached sequence is itself a valid cache, so shortening a row is only a smaller length.
    The slot T is scratch: padding is written there, and nothing reads it.
    """

    def __init__(
        self,
        n_layer: int,
        rows: int,
        n_head: int,
        window: int,
        head_size: int,
        device: torch.device | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        shape = (n_layer, rows, n_head, window + 1, head_size)
        self.keys = torch.zeros(shape, device=device, dtype=dtype)
        self.values = torch.zeros(shape, device=device, dtype=dtype)
        self.lengths = torch.zeros(rows, dtype=torch.int64, device=device)

    @property
    def rows(self) -> int:
        return self.keys.shape[1]

    @property
    def window(self) -> int:
        return self.keys.shape[3] - 1

    def reset(self, rows: Tensor | None = None) -> None:
        """Forget the given rows (indices or a bool mask); all of them when None."""
        if rows is None:
            self.lengths.zero_()
        else:
            self.lengths[rows] = 0

    def plan(self, counts: Tensor, k: int, rows: Tensor | None = None) -> Slots:
        """Slots for up to `k` new tokens a row. Raises ValueError when a row would overflow."""
        lengths = self.lengths if rows is None else self.lengths[rows]  # (b,)
        span = int((lengths + counts).max())
        if span > self.window:
            raise ValueError(
                f"KVCache: a sequence would grow to {span} tokens, the window is {self.window}; "
                "shorten it, or build the model with a longer window"
            )
        step = torch.arange(k, device=lengths.device)  # (k,)
        positions = lengths[:, None] + step  # (b, k)
        targets = positions.masked_fill(step >= counts[:, None], self.window)
        index = torch.arange(self.rows, device=lengths.device) if rows is None else rows
        hidden = torch.arange(span, device=lengths.device) > positions[..., None]  # (b, k, span)
        bias = torch.zeros(hidden.shape, dtype=self.keys.dtype, device=hidden.device)
        bias.masked_fill_(hidden, -torch.inf)
        positions = positions.clamp(max=self.window - 1)
        return Slots(rows, positions, targets, index[:, None], span, bias[:, None])

    def append(self, layer: int, k: Tensor, v: Tensor, slots: Slots) -> tuple[Tensor, Tensor]:
        """Write new keys and values (b, k, nh, hs); return all visible ones (b, nh, span, hs).

        They are stored in the cache's dtype, whatever autocast made of them.
        """
        keys, values = self.keys[layer], self.values[layer]  # (B, nh, T + 1, hs)
        keys[slots.index, :, slots.targets] = k.to(keys.dtype)
        values[slots.index, :, slots.targets] = v.to(values.dtype)
        if slots.rows is None:
            return keys[:, :, : slots.span], values[:, :, : slots.span]
        return keys[slots.rows, :, : slots.span], values[slots.rows, :, : slots.span]

    def commit(self, counts: Tensor, slots: Slots) -> None:
        """Make the tokens written through `slots` part of their sequences."""
        if slots.rows is None:
            self.lengths += counts
        else:
            self.lengths[slots.rows] += counts


def weights_version(model: Any) -> Hashable:
    """Of a module: changes with all that makes cached keys and values wrong.

    That is an in-place update of a weight, a weight that is replaced, adapters switched off, and
    another precision.
    """
    weights = list(model.parameters())
    device = weights[0].device.type
    precision = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else None
    return adapters_off(model), precision, tuple((p.data_ptr(), p._version) for p in weights)
