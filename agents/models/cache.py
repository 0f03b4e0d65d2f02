"""A ragged key-value cache: many sequences, each of its own length."""

from __future__ import annotations

from collections.abc import Hashable
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

FIRST_CAPACITY = 64
"""Tokens of a row that a new cache has room for."""
SPARE = 2048
"""Padding that on a GPU costs less than the launches of another forward, in tokens."""


def to_device(array: np.ndarray, device: torch.device) -> Tensor:
    """The array on the device, copied without synchronising."""
    tensor = torch.from_numpy(array)
    if device.type == "cuda":
        tensor = tensor.pin_memory()  # else the copy waits all the same
    return tensor.to(device, non_blocking=True)


@dataclass(frozen=True)
class CacheGroup:
    """Neighbours among the rows of one `extend` that add about as many tokens: they attend at once.

    Between the packed tokens (n, ...) and rows of equal length (b, k, ...) lie `pad` and `unpad`.
    """

    tokens: slice  # of the packed new tokens
    rows: Tensor | None  # (b,) cache rows; None = all of them, in order
    positions: Tensor  # (b, k) place of each new token in its sequence, padding included
    inside: Tensor | None  # (n,) flat places in (b * k) of the real tokens; None = all of them
    span: int  # longest sequence after the extension: keys are read up to here
    fresh: bool  # nothing of these sequences was cached before
    dtype: torch.dtype  # of keys and values

    def pad(self, packed: Tensor) -> Tensor:
        """(n, ...) to (b, k, ...), zeros where no token is."""
        if self.inside is None:
            return packed.unflatten(0, self.positions.shape)
        rows = packed.new_zeros(self.positions.numel(), *packed.shape[1:])
        return rows.index_copy_(0, self.inside, packed).unflatten(0, self.positions.shape)

    def unpad(self, rows: Tensor) -> Tensor:
        """(b, k, ...) to (n, ...)."""
        flat = rows.flatten(0, 1)
        return flat if self.inside is None else flat.index_select(0, self.inside)

    @cached_property
    def bias(self) -> Tensor:
        """(b, 1, k, span), 0 where a new token sees a key and -inf where not."""
        hidden = torch.arange(self.span, device=self.positions.device) > self.positions[..., None]
        bias = torch.zeros(hidden.shape, dtype=self.dtype, device=hidden.device)
        return bias.masked_fill_(hidden, -torch.inf)[:, None]


@dataclass(frozen=True)
class Slots:
    """Places of the new tokens of one `extend`, packed row after row, and what they attend to."""

    rows: Tensor  # (n,) cache row of each new token
    positions: Tensor  # (n,) its place in its sequence
    groups: list[CacheGroup]
    last: Tensor | None  # (b,) places among the packed tokens of each row's last; None = all
    ends: CacheGroup  # of the last tokens alone


class KVCache:
    """Keys and values of `rows` sequences, each row with its own length.

    Shapes: `keys` and `values` (n_layer, B, nh, C, hs), `lengths` (B,) int64, on the host. The
    capacity C grows with the longest sequence, up to `window`. A prefix of a cached sequence is
    itself a valid cache, so shortening a row is only a smaller length.

    Attributes:
        spare: rows that add unequal numbers of tokens attend at once for so much padding.
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
        self.window = window
        shape = (n_layer, rows, n_head, min(window, FIRST_CAPACITY), head_size)
        self.keys = torch.zeros(shape, device=device, dtype=dtype)
        self.values = torch.zeros(shape, device=device, dtype=dtype)
        self.lengths = np.zeros(rows, np.int64)
        self.spare = 0 if self.keys.device.type == "cpu" else SPARE

    @property
    def rows(self) -> int:
        return self.keys.shape[1]

    @property
    def capacity(self) -> int:
        """Tokens of a row that there is room for without growing."""
        return self.keys.shape[3]

    def reserve(self, tokens: int) -> None:
        """Make room for sequences of that many tokens; at least twice as many as before."""
        held = self.capacity
        if tokens <= held:
            return
        capacity = min(self.window, max(tokens, 2 * held))
        with torch.inference_mode(False), torch.no_grad():  # written to outside of it, too
            for name in ("keys", "values"):
                old = getattr(self, name)
                new = old.new_zeros((*old.shape[:3], capacity, old.shape[4]))
                new[:, :, :, :held] = old
                setattr(self, name, new)

    def copied(self, rows: np.ndarray, lengths: np.ndarray, more: int) -> KVCache:
        """A cache of `rows` (n,) of this one, in which they may come several times.

        Args:
            rows: of this cache.
            lengths: (n,) tokens of each that are taken, from its first.
            more: tokens that each may add.
        """
        span, index = int(lengths.max(initial=1)), self._tensor(rows)
        other = copy(self)
        other.window, other.lengths = span + more, lengths.copy()
        with torch.inference_mode(False), torch.no_grad():  # as of `reserve`
            for name in ("keys", "values"):
                taken = getattr(self, name)[:, index, :, :span]
                setattr(other, name, F.pad(taken, (0, 0, 0, more)))
        return other

    def reset(self) -> None:
        """Forget all rows."""
        self.lengths[:] = 0

    def plan(self, counts: np.ndarray, rows: np.ndarray) -> Slots:
        """Slots for `counts` (b,) new tokens, 1 or more, of the cache rows `rows` (b,).

        It costs least where rows that add about as many tokens are neighbours.

        Raises:
            ValueError: a row would overflow, or has no new token.
        """
        known = self.lengths[rows]
        self._check(known, counts)
        self.reserve(int((known + counts).max()))
        if counts.max() == 1:
            group = self._group(0, rows, known, counts)
            return Slots(self._tensor(rows), self._tensor(known), [group], None, group)
        owner, positions = packed(known, counts)
        ends = counts.cumsum()
        bounds = [0, len(rows)]
        if len(rows) * counts.max() > counts.sum() + self.spare:
            bounds[1:1] = (np.flatnonzero(np.diff(likeness(known, counts))) + 1).tolist()
        groups = [
            self._group(ends[i] - counts[i], rows[i:j], known[i:j], counts[i:j])
            for i, j in pairwise(bounds)
        ]
        return Slots(
            rows=self._tensor(rows[owner]),
            positions=self._tensor(positions),
            groups=groups,
            last=self._tensor(ends - 1),
            ends=self._group(0, rows, known + counts - 1, np.ones_like(counts)),
        )

    def append(self, layer: int, k: Tensor, v: Tensor, rows: Tensor, positions: Tensor) -> None:
        """Write new keys and values (n, nh, hs), in the cache's dtype, at `positions` of `rows`."""
        keys, values = self.keys[layer], self.values[layer]  # (B, nh, T, hs)
        keys[rows, :, positions] = k.to(keys.dtype)
        values[rows, :, positions] = v.to(values.dtype)

    def read(self, layer: int, group: CacheGroup) -> tuple[Tensor, Tensor]:
        """Keys and values (b, nh, span, hs) of the group's rows."""
        keys, values = self.keys[layer, :, :, : group.span], self.values[layer, :, :, : group.span]
        return (keys, values) if group.rows is None else (keys[group.rows], values[group.rows])

    def commit(self, counts: np.ndarray, rows: np.ndarray) -> None:
        """Make `counts` (b,) tokens written to `rows` (b,) part of their sequences."""
        self.lengths[rows] += counts

    def _check(self, known: np.ndarray, counts: np.ndarray) -> None:
        longest = int((known + counts).max())
        if longest > self.window:
            raise ValueError(
                f"KVCache: a sequence would grow to {longest} tokens, the window is {self.window}; "
                "shorten it, or build the model with a longer window"
            )
        if counts.min() < 1:
            raise ValueError(
                f"KVCache: each row must add at least 1 token, got counts {counts.tolist()}; "
                "leave out rows that add none"
            )

    def _group(
        self, start: int, rows: np.ndarray, known: np.ndarray, counts: np.ndarray
    ) -> CacheGroup:
        longest, chosen = int(counts.max()), None
        if longest == 1 and 2 * len(rows) >= self.rows:
            # Idle rows as padding are cheaper than a copy of the others' keys.
            first, inside = np.zeros(self.rows, np.int64), rows
            first[rows] = known
        else:
            first, inside = known, np.flatnonzero(np.arange(longest) < counts[:, None])
            chosen = self._tensor(rows)
        positions = np.minimum(first[:, None] + np.arange(longest), self.capacity - 1)
        padded = not np.array_equal(inside, np.arange(positions.size))
        return CacheGroup(
            tokens=slice(int(start), int(start + counts.sum())),
            rows=chosen,
            positions=self._tensor(positions),
            inside=self._tensor(inside) if padded else None,
            span=int((known + counts).max()),
            fresh=longest > 1 and not known.any(),
            dtype=self.keys.dtype,
        )

    def _tensor(self, array: np.ndarray) -> Tensor:
        return to_device(array, self.keys.device)


def packed(starts: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Runs of `counts` (b,) places from `starts` (b,), one after another: run and place, (n,)."""
    owner = np.repeat(np.arange(len(counts)), counts)
    return owner, np.arange(len(owner)) + (starts + counts - counts.cumsum())[owner]


def likeness(known: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Of rows (b,) with `known` cached tokens that add `counts`: alike are those that attend alike.

    Numbers grow with the power of two below `counts`; they are negative for rows with nothing
    cached, which need not look at the cache, and so sort before the others.
    """
    size = np.frexp(counts)[1]
    return np.where((known == 0) & (counts > 1), -size, size)


def weights_version(model: Any) -> Hashable:
    """Version of a module's weights: changes with all that makes cached keys and values wrong.

    That is an in-place update of a weight, a weight that is replaced, and another precision.
    """
    return precision(model.embedding.device), weight_versions(model)


def weight_versions(model: Any) -> tuple[tuple[int, int], ...]:
    """Address of each weight of a module, and the count of its in-place updates."""
    versions, modules = list[tuple[int, int]](), [model]
    for module in modules:  # it grows; far cheaper than `parameters()`, in every step of a rollout
        if module._parameters:  # adapters come with many empty containers
            weights = [p for p in module._parameters.values() if p is not None]
            versions += [(p.data_ptr(), p._version) for p in weights]
        if module._modules:
            modules += [part for part in module._modules.values() if part is not None]
    return tuple(versions)


def computing_dtype(weight: Tensor) -> torch.dtype:
    """Dtype of keys and values: autocast's, where that is on."""
    return precision(weight.device) or weight.dtype


def precision(device: torch.device) -> torch.dtype | None:
    """Autocast's dtype on the device; None where it is off."""
    kind = device.type
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else None
