"""A small GPT: pre-LN transformer with learned positions (Radford et al. 2019).

Two ways through it, equal in result: `forward` takes whole sequences, `extend` appends new
tokens to sequences whose keys and values are cached. There is no dropout: under PPO it would
make the new policy differ from the old one before any update.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.compiler import is_compiling
from torch.utils.checkpoint import checkpoint

from agents.models.cache import CacheGroup, KVCache, Slots, computing_dtype
from agents.models.gpt_config import GPTConfig
from agents.models.rotary import Angles, Rotary, turned

RATIO, SMALLEST = 0.9, 512
"""In one attention no sequence is shorter than this share of the longest, unless it is small: of
fewer tokens, where a further call would cost more than padding."""


class Attention(nn.Module):
    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.n_head = config.n_head
        self.qkv = nn.Linear(config.n_embd, 3 * config.n_embd)
        self.proj = nn.Linear(config.n_embd, config.n_embd)

    def _heads(self, x: Tensor, angles: Angles | None) -> Tensor:
        """Queries, keys and values (..., n, 3, nh, hs) of tokens (..., n, d)."""
        heads = self.qkv(x).unflatten(-1, (3, self.n_head, -1))
        return heads if angles is None else turned(heads, angles)

    def forward(self, x: Tensor, angles: Angles | None) -> Tensor:  # (B, T, d)
        q, k, v = self._heads(x, angles).permute(2, 0, 3, 1, 4)  # (B, nh, T, hs)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.proj(y.transpose(1, 2).flatten(2))

    def packed(self, x: Tensor, angles: Angles | None, packing: Packing, last: bool) -> Tensor:
        """Attention of packed tokens (n, d); with `last` only at the decisions, (N, d)."""
        heads = self._heads(x, angles)
        parts = heads.split([group.tokens.total for group in packing.groups])
        if not last:
            read = [self._read(part, group.tokens) for part, group in zip(parts, packing.groups)]
            return self.proj(torch.cat(read))
        asked = heads[:, 0].index_select(0, packing.asked)
        queries = asked.split([group.asked.total for group in packing.groups])
        read = [self._ask(*each) for each in zip(queries, parts, packing.groups)]
        return self.proj(torch.cat(read))

    def _read(self, heads: Tensor, rows: Rows) -> Tensor:
        """Queries, keys and values (n, 3, nh, hs) of like sequences to (n, d)."""
        q, k, v = rows.pad(heads).permute(2, 0, 3, 1, 4)  # (b, nh, k, hs)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return rows.unpad(y.transpose(1, 2).flatten(2))

    def _ask(self, queries: Tensor, heads: Tensor, group: Alike) -> Tensor:
        """Attention (m, d) of queries (m, nh, hs) at the decisions."""
        q = group.asked.pad(queries).transpose(1, 2)  # (b, nh, places, hs)
        k, v = group.tokens.pad(heads[:, 1:]).permute(2, 0, 3, 1, 4)  # (b, nh, k, hs)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=group.visible)
        return group.asked.unpad(y.transpose(1, 2).flatten(2))

    def extend(
        self, x: Tensor, angles: Angles | None, layer: int, cache: KVCache, slots: Slots, last: bool
    ) -> Tensor:
        """Attention of packed new tokens (n, d); with `last` only at the ends of rows, (b, d)."""
        heads = self._heads(x, angles)
        cache.append(layer, heads[:, 1], heads[:, 2], slots.rows, slots.positions)
        if last and slots.last is not None:
            heads = heads[slots.last]
        groups = [slots.ends] if last else slots.groups
        parts = [self._attend(heads[g.tokens], layer, cache, g) for g in groups]
        return self.proj(parts[0] if len(parts) == 1 else torch.cat(parts))

    def _attend(self, heads: Tensor, layer: int, cache: KVCache, group: CacheGroup) -> Tensor:
        """Queries, keys and values (n, 3, nh, hs) of a group's new tokens to (n, d)."""
        if group.fresh:
            q, k, v = group.pad(heads).permute(2, 0, 3, 1, 4)  # (b, nh, k, hs)
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            q = group.pad(heads[:, 0]).transpose(1, 2) / math.sqrt(heads.shape[-1])
            keys, values = cache.read(layer, group)  # (b, nh, span, hs)
            # Plain products: for a few queries a row they beat the fused kernels on a CPU.
            scores = (q @ keys.transpose(2, 3)).add_(group.bias)
            y = scores.softmax(-1) @ values  # (b, nh, k, hs)
        return group.unpad(y.transpose(1, 2).flatten(2))


class GELU(nn.GELU):
    """The tanh form, by a sigmoid where that is quicker: (1 + tanh u) / 2 = sigmoid(2 u)."""

    def __init__(self) -> None:
        super().__init__(approximate="tanh")

    def forward(self, x: Tensor) -> Tensor:
        # A GPU and a compiler fuse it; in halves each of our steps would round.
        if x.device.type == "cpu" and x.dtype == torch.float32 and not is_compiling():
            return _SigmoidGELU.apply(x)  # type: ignore[no-any-return]
        return super().forward(x)


class _SigmoidGELU(torch.autograd.Function):
    """x s(v), v = a x + b x^3; its derivative is s + s (1 - s) (a x + 3 b x^3)."""

    a = math.sqrt(8 / math.pi)
    b = 0.044715 * a

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        s = x.square().mul_(_SigmoidGELU.b).add_(_SigmoidGELU.a).mul_(x).sigmoid_()
        ctx.save_for_backward(x, s)
        return x * s

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        x, s = ctx.saved_tensors
        slope = x.square().mul_(3 * _SigmoidGELU.b).add_(_SigmoidGELU.a).mul_(x)
        return slope.mul_(1 - s).add_(1).mul_(s).mul_(grads[0])


class MLP(nn.Sequential):
    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.up = nn.Linear(config.n_embd, 4 * config.n_embd)
        self.act = GELU()
        self.proj = nn.Linear(4 * config.n_embd, config.n_embd)


class Block(nn.Module):
    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.ln_1 = nn.LayerNorm(config.n_embd)
        self.attn = Attention(config)
        self.ln_2 = nn.LayerNorm(config.n_embd)
        self.mlp = MLP(config)

    def forward(
        self,
        x: Tensor,
        angles: Angles | None = None,
        at: Tensor | None = None,
        packing: Packing | None = None,
    ) -> Tensor:
        """Hidden states (B, T, d), or packed (n, d); in the last layer only those `at` places."""
        if packing is None:
            x = x + self.attn(self.ln_1(x), angles)
            x = x if at is None else x.flatten(0, 1)[at]
        else:
            y = self.attn.packed(self.ln_1(x), angles, packing, at is not None)
            x = (x if at is None else x.index_select(0, packing.asked)) + y
        return x + self.mlp(self.ln_2(x))

    def extend(
        self, x: Tensor, angles: Angles | None, layer: int, cache: KVCache, slots: Slots, last: bool
    ) -> Tensor:
        y = self.attn.extend(self.ln_1(x), angles, layer, cache, slots, last)
        if last and slots.last is not None:
            x = x[slots.last]
        x = x + y
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    """Tokens to hidden states; implements the `Backbone` protocol. Heads live elsewhere.

    Initialisation is GPT-2's, its deviation scaled with the width (`GPTConfig.std`, 0.02 at
    width 768): weights and embeddings from N(0, std), the two projections that write into the
    residual stream from N(0, std / sqrt(2 n_layer)), biases 0, layer norms 1 and 0.

    Attributes:
        gradient_checkpointing: `forward` keeps only the input of each block and computes the rest
            again when gradients are taken: less memory, about a third more time.
    """

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.config = config
        self.width = config.n_embd
        self.window = config.window
        self.gradient_checkpointing = False
        self.wte = nn.Embedding(config.vocab_size, config.n_embd)
        self.wpe: Any = None  # nn.Embedding, unless positions are rotary
        if config.positions == "learned":
            self.wpe = nn.Embedding(config.window, config.n_embd)
        self.rotary: Rotary | None = None
        if config.positions == "rotary":
            self.rotary = Rotary(config.window, config.n_embd // config.n_head)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.n_layer))
        self.ln_f = nn.LayerNorm(config.n_embd)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new weights from PyTorch's generator."""
        std, residual_std = self.config.std, self.config.std / math.sqrt(2 * self.config.n_layer)
        for name, weight in self.named_parameters():
            if name.endswith("proj.weight"):
                nn.init.normal_(weight, std=residual_std)
            elif weight.ndim == 2:
                nn.init.normal_(weight, std=std)
            elif name.endswith("bias"):
                nn.init.zeros_(weight)

    @property
    def embedding(self) -> Tensor:
        return self.wte.weight

    def forward(
        self, tokens: Tensor, at: Tensor | None = None, bias: Tensor | None = None
    ) -> Tensor:
        """Hidden states (B, T, d) of token ids (B, T), or (N, d) of the flat places `at` (N,).

        A `bias` (B, d) is added to the embeddings of each row.

        Raises ValueError when T > window.
        """
        t = tokens.shape[1]
        if t > self.window:
            raise ValueError(f"GPT: sequences of {t} tokens, the window is {self.window}")
        packing = None
        # Sequences are packed on a CPU alone: a GPU would have to be waited for.
        if at is not None and len(at) and at.device.type == "cpu" and not is_compiling():
            packing = Packing.of(at.numpy(), t)
        x = self._embedded(tokens, bias, packing)
        angles = self._angles(slice(t) if packing is None else packing.positions)
        last = len(self.blocks) - 1
        recompute = self.gradient_checkpointing and torch.is_grad_enabled()
        for layer, block in enumerate(self.blocks):
            run = partial(checkpoint, block, use_reentrant=False) if recompute else block
            x = run(x, angles, at if layer == last else None, packing)
        x = self.ln_f(x)
        return x if packing is None or packing.back is None else x[packing.back]

    def _embedded(self, tokens: Tensor, bias: Tensor | None, packing: Packing | None) -> Tensor:
        """Embeddings (B, T, d), or packed (n, d)."""
        if packing is None:
            x = self._placed(self.wte(tokens), slice(tokens.shape[1]))
            return x if bias is None else x + bias[:, None]
        x = self._placed(self.wte(tokens.flatten()[packing.tokens]), packing.positions)
        return x if bias is None else x + bias[packing.rows]

    def _placed(self, x: Tensor, positions: Tensor | slice) -> Tensor:
        """Embeddings (..., n, d) plus learned position embeddings, if the model has these."""
        if self.wpe is None:
            return x
        beginning = isinstance(positions, slice)
        return x + (self.wpe.weight[positions] if beginning else self.wpe(positions))

    def _angles(self, positions: Tensor | slice) -> Angles | None:
        return None if self.rotary is None else self.rotary(positions)

    def new_cache(self, rows: int) -> KVCache:
        c, weight = self.config, self.wte.weight
        head_size = c.n_embd // c.n_head
        dtype = computing_dtype(weight)
        return KVCache(c.n_layer, rows, c.n_head, c.window, head_size, weight.device, dtype)

    @torch.inference_mode()
    def extend(
        self,
        tokens: Tensor,
        counts: np.ndarray,
        cache: KVCache,
        rows: np.ndarray,
        bias: Tensor | None = None,
    ) -> Tensor:
        """Hidden states (b, d) at the ends of rows that grow by the packed `tokens` (n,).

        See `Backbone.extend`. Gradients never flow through a cache.
        """
        slots = cache.plan(counts, rows)
        x = self._placed(self.wte(tokens), slots.positions)  # (n, d)
        if bias is not None:
            x = x + bias
        angles = self._angles(slots.positions)
        final = len(self.blocks) - 1
        for layer, block in enumerate(self.blocks):
            assert isinstance(block, Block)
            x = block.extend(x, angles, layer, cache, slots, last=layer == final)
        cache.commit(counts, rows)
        return self.ln_f(x)


# Packing: sequences of different lengths read together, without padding but in attention. Tokens
# stand one sequence after another; sequences of about the same length attend at once.


@dataclass(frozen=True)
class Rows:
    """Runs of packed items, side by side: between (n, ...) and rows (b, k, ...)."""

    total: int  # n, items packed
    shape: tuple[int, int]  # b, k
    spread: Tensor | None  # (b * k,) item of each place, padding a copy; None = all are k long
    inside: Tensor | None  # (n,) place of each item

    @classmethod
    def of(cls, counts: np.ndarray) -> Rows:
        """Rows of `counts` (b,) items, 1 or more."""
        longest, places = int(counts.max()), np.arange(counts.max())
        shape, total = (len(counts), longest), int(counts.sum())
        if total == len(counts) * longest:
            return cls(total, shape, None, None)
        starts = (counts.cumsum() - counts)[:, None]
        spread = (starts + np.minimum(places, counts[:, None] - 1)).ravel()
        inside = np.flatnonzero(places < counts[:, None])
        return cls(total, shape, torch.from_numpy(spread), torch.from_numpy(inside))

    def pad(self, packed: Tensor) -> Tensor:
        """(n, ...) to (b, k, ...)."""
        spread = packed if self.spread is None else packed.index_select(0, self.spread)
        return spread.unflatten(0, self.shape)

    def unpad(self, rows: Tensor) -> Tensor:
        """(b, k, ...) to (n, ...)."""
        flat = rows.flatten(0, 1)
        return flat if self.inside is None else flat.index_select(0, self.inside)


class Alike(NamedTuple):
    """Sequences of about the same length, and the places in them that are asked for."""

    tokens: Rows
    asked: Rows
    visible: Tensor  # (b, 1, places, tokens) bool, what a place that is asked for may look at


@dataclass(frozen=True)
class Packing:
    """Places of the tokens (B, T) of a batch when they are packed, as far as they are needed.

    What stands after the last place of a row that is asked for is left out.
    """

    tokens: Tensor  # (n,) flat places in (B * T)
    rows: Tensor  # (n,) their rows
    positions: Tensor  # (n,) and their positions there
    groups: list[Alike]
    asked: Tensor  # (N,) the packed tokens that are asked for, group by group
    back: Tensor | None  # (N,) to the order in which they were asked for; None = as it is

    @classmethod
    def of(cls, at: np.ndarray, width: int) -> Packing:
        """Packing for the flat places `at` (N,), 1 or more, in rows of `width` tokens."""
        row, place = np.divmod(at, width)
        used, row, counts = np.unique(row, return_inverse=True, return_counts=True)
        lengths = np.zeros(len(used), np.int64)
        np.maximum.at(lengths, row, place + 1)
        grouped = list(buckets(lengths, RATIO, SMALLEST))
        order = np.concatenate(grouped)  # longest first
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        sorted_at = np.lexsort((place, rank[row]))
        row, place = rank[row][sorted_at], place[sorted_at]
        lengths, counts, used = lengths[order], counts[order], used[order]
        starts = lengths.cumsum() - lengths
        owner = np.repeat(np.arange(len(used)), lengths)
        positions = np.arange(len(owner)) - starts[owner]
        bounds = np.cumsum([0, *map(len, grouped)])
        first = np.concatenate([[0], counts.cumsum()])
        groups = [
            _alike(lengths[i:j], counts[i:j], place[first[i] : first[j]])
            for i, j in pairwise(bounds)
        ]
        in_order = np.array_equal(sorted_at, np.arange(len(at)))
        return cls(
            torch.from_numpy(used[owner] * width + positions),
            torch.from_numpy(used[owner]),
            torch.from_numpy(positions),
            groups,
            torch.from_numpy(starts[row] + place),
            None if in_order else torch.from_numpy(np.argsort(sorted_at)),
        )


def _alike(lengths: np.ndarray, counts: np.ndarray, places: np.ndarray) -> Alike:
    tokens, asked = Rows.of(lengths), Rows.of(counts)
    until = asked.pad(torch.from_numpy(places))
    visible = torch.arange(tokens.shape[1]) <= until[..., None]
    return Alike(tokens, asked, visible[:, None])


def buckets(lengths: np.ndarray, ratio: float, smallest: int = 1) -> Iterator[np.ndarray]:
    """Split rows by length, so that padding to the longest of a bucket wastes little.

    Longest first; a bucket closes before a length below `ratio` times its longest, once it
    holds `smallest` tokens. Yields index arrays.
    """
    order = np.argsort(-lengths, kind="stable")
    start = 0
    for i in range(1, len(order)):
        longest = lengths[order[start]]
        if lengths[order[i]] < ratio * longest and (i - start) * longest >= smallest:
            yield order[start:i]
            start = i
    yield order[start:]
