"""Heads on a backbone: linear maps for policy and value, and an MLP for Q."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from agents.models.masking import FORBIDDEN, unpacked_bits

EXACT_HEAD = 2**20
"""Policy heads of at most this many weights are computed in float32 under autocast too."""

MOST_LOGITS = 2**24
"""Logits that are computed at once, 64 MB of them."""


def exactly(hidden: Tensor) -> AbstractContextManager[Any]:
    """A context without autocast, which costs nothing where there is none."""
    device = hidden.device.type
    if torch.is_autocast_enabled(device):
        return torch.autocast(device, enabled=False)
    return nullcontext()


class PolicyHead(nn.Module):
    """Hidden states (..., d) to float32 logits (..., V), divided by a temperature.

    Tied, it shares the token embeddings, as GPT-2 does. With its own weights it starts at `initial`
    (V, d), or at zero: the first policy is uniform.
    """

    def __init__(
        self,
        width: int,
        vocab_size: int,
        tied_to: Tensor | None = None,
        initial: Tensor | None = None,
        temperature: float = 1.0,
    ) -> None:
        super().__init__()
        self.temperature = temperature
        own = nn.Linear(width, vocab_size, bias=False).weight
        self.weight = own if tied_to is None else tied_to
        if tied_to is None:
            with torch.no_grad():
                own.copy_(torch.zeros_like(own) if initial is None else initial)

    def linear_map(self, hidden: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        """Inputs (..., d) of the linear map, its weight (V, d) and its bias."""
        return hidden / self.temperature, self.weight, None

    def forward(self, hidden: Tensor, tokens: Tensor | None = None) -> Tensor:
        """Logits (..., V), or (..., K) of the `tokens` (K,)."""
        weight = self.weight if tokens is None else self.weight[tokens]
        hidden = hidden if self.temperature == 1 else hidden / self.temperature
        # bfloat16 would round a logit of 8 to 1/32, which moves the ratios of PPO; only for large
        # vocabularies is that the price of speed.
        if self.weight.numel() > EXACT_HEAD:
            return F.linear(hidden, weight).float()
        with exactly(hidden):
            return F.linear(hidden.float(), weight.float())


def log_probs_of(
    head: PolicyHead,
    hidden: Tensor,
    actions: Tensor,
    allowed: Tensor | None = None,
    entropy_gradient: bool = True,
) -> tuple[Tensor, Tensor]:
    """Log-probabilities and entropies (N,) of decisions, without logits (N, V) of all at once.

    Of many decisions those of a piece are computed, and computed again when gradients are taken:
    with V = 50,000 the logits of one decision alone are 200 kB.

    Args:
        head: of the policy.
        hidden: (N, d) states before the decisions.
        actions: (N,) int64 token ids.
        allowed: (N, V) bool, or its bits (N, ceil(V / 8)) uint8 (`packed_bits`); None allows all.
        entropy_gradient: whether a gradient is to flow through the entropies.
    """
    size = max(MOST_LOGITS // head.weight.shape[0], 1)
    if len(hidden) <= size:
        return _log_probs_of(head, hidden, actions, allowed, entropy_gradient)
    masks = [None] * -(-len(hidden) // size) if allowed is None else allowed.split(size)
    parts = [
        checkpoint(_log_probs_of, head, *piece, entropy_gradient, use_reentrant=False)
        for piece in zip(hidden.split(size), actions.split(size), masks, strict=True)
    ]
    log_probs, entropies = zip(*parts, strict=True)
    return torch.cat(log_probs), torch.cat(entropies)


def _log_probs_of(
    head: PolicyHead,
    hidden: Tensor,
    actions: Tensor,
    allowed: Tensor | None,
    entropy_gradient: bool,
) -> tuple[Tensor, Tensor]:
    if allowed is not None and allowed.dtype == torch.uint8:
        allowed = unpacked_bits(allowed, head.weight.shape[0])
    logits, used = masked_logits(head, hidden, allowed, actions)
    if used is not None:
        actions = torch.searchsorted(used, actions)
    log_probs = logits.log_softmax(-1)
    with torch.set_grad_enabled(torch.is_grad_enabled() and entropy_gradient):
        # Not log_probs.exp(): MKL takes ten times as long where an exponential vanishes.
        entropy = -(logits.softmax(-1) * log_probs).sum(-1)
    return log_probs.gather(-1, actions[:, None])[:, 0], entropy


def masked_logits(
    head: PolicyHead, hidden: Tensor, allowed: Tensor | None, actions: Tensor | None = None
) -> tuple[Tensor, Tensor | None]:
    """Logits of the tokens that may be said anywhere in a batch, forbidden ones at `FORBIDDEN`.

    A token that is allowed nowhere has no probability and no gradient, so that leaving it out
    changes nothing; where masks are narrow these are nearly all of a vocabulary.

    Args:
        head: of the policy.
        hidden: (N, d).
        allowed: (N, V) bool; None allows all.
        actions: (N,) int64, kept whether they are allowed or not.

    Returns:
        Logits (N, K), and their tokens (K,) in ascending order; None for all of them, K = V. On a
        GPU it is all: which are used would have to be waited for.
    """
    if allowed is None:
        return head(hidden), None
    used = _used(allowed, actions) if allowed.device.type == "cpu" else None
    if used is not None:
        allowed = allowed[:, used]
    return head(hidden, used).masked_fill(~allowed, FORBIDDEN), used


def _used(allowed: Tensor, actions: Tensor | None) -> Tensor | None:
    """Tokens (K,) that are allowed in some row of (N, V), or chosen; None where it is most."""
    anywhere = torch.from_numpy(allowed.numpy().any(0))  # PyTorch's own takes five times as long
    if actions is not None:
        anywhere[actions] = True
    used = anywhere.nonzero()[:, 0]
    return None if 2 * len(used) > len(anywhere) else used


class ValueHead(nn.Module):
    """Hidden states (..., d) to float32 values (..., 1); starts at zero everywhere."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, 1)
        nn.init.zeros_(self.linear.weight)
        nn.init.zeros_(self.linear.bias)

    def forward(self, hidden: Tensor) -> Tensor:
        with exactly(hidden):
            return self.linear(hidden.float())


class MLPHead(nn.Module):
    """Hidden states (..., d) to float32 outputs (..., k) by way of 2 d units; starts at zero."""

    def __init__(self, width: int, outputs: int) -> None:
        super().__init__()
        self.inner = nn.Linear(width, 2 * width)
        self.outer = nn.Linear(2 * width, outputs)
        nn.init.zeros_(self.outer.weight)
        nn.init.zeros_(self.outer.bias)

    def linear_map(self, hidden: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Inputs (..., 2 d) of the outer linear map, its weight (k, 2 d) and its bias (k,)."""
        return self.inner(hidden.float()).relu(), self.outer.weight, self.outer.bias

    def forward(self, hidden: Tensor) -> Tensor:
        with exactly(hidden):
            return F.linear(*self.linear_map(hidden))


class ResidualHead(nn.Module):
    """A feed-forward block of a transformer, then a linear map: deeper than `MLPHead`.

    Hidden states (..., d) to float32 outputs (..., k), LN(x + W2 gelu(W1 LN(x))) through a map that
    starts at zero.

    Args:
        width: d.
        outputs: k.
        hidden: units of the block; None is 4 d.
        dropout: of what the block adds, while training.
    """

    def __init__(
        self, width: int, outputs: int = 1, hidden: int | None = None, dropout: float = 0.0
    ) -> None:
        super().__init__()
        inner = hidden or 4 * width
        self.block = nn.Sequential(
            nn.LayerNorm(width),
            nn.Linear(width, inner),
            nn.GELU(),
            nn.Linear(inner, width),
            nn.Dropout(dropout),
        )
        self.norm = nn.LayerNorm(width)
        self.outer = nn.Linear(width, outputs)
        nn.init.zeros_(self.outer.weight)
        nn.init.zeros_(self.outer.bias)

    def forward(self, hidden: Tensor) -> Tensor:
        with exactly(hidden):
            hidden = hidden.float()
            return self.outer(self.norm(hidden + self.block(hidden)))


def token_log_probs(head: PolicyHead, hidden: Tensor, allowed: Tensor | None) -> Tensor:
    """Log-probabilities (N, V) of every token, from hidden states (N, d) and masks (N, V)."""
    logits = head(hidden)
    if allowed is not None:
        logits = logits.masked_fill(~allowed, FORBIDDEN)
    return logits.log_softmax(-1)


def chosen(of_tokens: Tensor, actions: Tensor) -> Tensor:
    """Of numbers (N, V), those of the tokens or acts `actions` (N,)."""
    return of_tokens.gather(1, actions[:, None])[:, 0]
