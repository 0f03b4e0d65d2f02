"""Prefix grouping: one forward for all observations that are the beginnings of one another.

A minibatch of PPO holds many moments of the same dialogue. A causal model computes all of them
while it reads the longest one, so only the maximal sequences need a forward.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from agents.models.backbone import Backbone
from agents.models.cache import to_device
from agents.models.gpt import buckets

PAD = 0
RATIO = 0.8
"""See `buckets`."""


def lengths_of(tokens: Tensor) -> Tensor:
    """Tokens (B, L), PAD at the right, to lengths (B,): one more than the last that is not PAD.

    An empty row counts as one token, so that it has a hidden state at all.
    """
    ends = torch.arange(1, tokens.shape[1] + 1, device=tokens.device)
    return ((tokens != PAD) * ends).amax(1).clamp(min=1)


def left_aligned(tokens: Tensor) -> Tensor:
    """Rows (B, L) that begin with PAD, moved to the left; the others as they are.

    An env may pad on either side: this way the two give the same, positions included.
    """
    if tokens[:, 0].all():  # the cheap check first: no row begins with PAD, which is 0
        return tokens
    starts = (tokens != PAD).int().argmax(1, keepdim=True)  # 0 where all is PAD
    places = torch.arange(tokens.shape[1], device=tokens.device) + starts
    moved = tokens.gather(1, places.clamp(max=tokens.shape[1] - 1))
    return moved.masked_fill(places >= tokens.shape[1], PAD)


@dataclass(frozen=True)
class PrefixGroups:
    """`owner[i]` indexes `maximal`; row i is the beginning of row `maximal[owner[i]]`."""

    maximal: np.ndarray  # (M,) rows that are the beginning of no other
    owner: np.ndarray  # (B,)


def group_prefixes(tokens: np.ndarray, lengths: np.ndarray) -> PrefixGroups:
    """Groups of rows (B, T) with `lengths` (B,); tokens beyond a row's length must be PAD.

    In lexicographic order a beginning comes before everything that continues it, and only
    continuations stand between the two: comparing each row with the next one is enough.
    """
    order = np.argsort(_as_strings(tokens), kind="stable")
    rows, ends = tokens[order], lengths[order]
    beyond = np.arange(tokens.shape[1]) >= ends[:-1, None]
    is_prefix = np.append(((rows[:-1] == rows[1:]) | beyond).all(1), False)
    owner = np.empty(len(tokens), dtype=np.int64)
    owner[order] = np.cumsum(~is_prefix) - ~is_prefix  # maximal rows that come before
    return PrefixGroups(order[~is_prefix], owner)


def _as_strings(tokens: np.ndarray) -> np.ndarray:
    """Rows as byte strings that sort as the rows do (big-endian; trailing PAD is dropped)."""
    size = 1 if tokens.max(initial=0) < 256 else 4
    big_endian = np.ascontiguousarray(tokens.astype(f">u{size}"))
    return big_endian.view(f"S{size * tokens.shape[1]}")[:, 0]


def last_hidden(
    backbone: Backbone,
    tokens: Tensor,
    group: bool = True,
    smallest: int = 2048,
    bias: Tensor | None = None,
) -> Tensor:
    """Hidden state (B, d) at the end of each row of `tokens` (B, L), with gradients.

    Args:
        backbone: any causal model of left-aligned sequences.
        tokens: (B, L) int, PAD at the right.
        group: one forward per maximal sequence; False reads every row by itself.
        smallest: see `buckets`.
        bias: (B, d), added to the embeddings of each row; no row is then the beginning of another.
    """
    device = backbone.embedding.device
    tokens = tokens.cpu()
    ends = lengths_of(tokens).numpy()
    tokens = tokens[:, : ends.max()]
    if group and bias is None:
        groups = group_prefixes(tokens.numpy(), ends)
    else:
        groups = PrefixGroups(np.arange(len(ends)), np.arange(len(ends)))
    states, places = [], []
    for bucket in buckets(ends[groups.maximal], RATIO, smallest):
        rows = groups.maximal[bucket]
        longest = int(ends[rows[0]])
        where = np.full(len(groups.maximal), -1)
        where[bucket] = longest * np.arange(len(bucket))
        served = np.flatnonzero(where[groups.owner] >= 0)  # rows of the batch read here
        at = to_device(where[groups.owner[served]] + ends[served] - 1, device)
        chosen = tokens[torch.from_numpy(rows), :longest].to(device)
        more = () if bias is None else (bias[to_device(rows, device)],)
        states.append(backbone(chosen, at, *more))
        places.append(served)
    back = np.argsort(np.concatenate(places))
    return torch.cat(states)[to_device(back, device)]
