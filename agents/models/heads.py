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

WORTH_WAITING = 2**20
"""Logits from which on a GPU is asked which tokens are used."""


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
    used = None if allowed is None else _used(head, allowed, actions)
    size = max(MOST_LOGITS // (head.weight.shape[0] if used is None else len(used)), 1)
    if len(hidden) <= size:
        return _log_probs_of(head, hidden, actions, allowed, used, entropy_gradient)
    masks = [None] * -(-len(hidden) // size) if allowed is None else allowed.split(size)
    parts = [
        checkpoint(_log_probs_of, head, *piece, used, entropy_gradient, use_reentrant=False)
        for piece in zip(hidden.split(size), actions.split(size), masks, strict=True)
    ]
    log_probs, entropies = zip(*parts, strict=True)
    return torch.cat(log_probs), torch.cat(entropies)


def _log_probs_of(
    head: PolicyHead,
    hidden: Tensor,
    actions: Tensor,
    allowed: Tensor | None,
    used: Tensor | None,
    entropy_gradient: bool,
) -> tuple[Tensor, Tensor]:
    logits = _logits(head, hidden, allowed, used)
    if used is not None:
        actions = torch.searchsorted(used, actions)
    log_probs = logits.log_softmax(-1)
    with torch.set_grad_enabled(torch.is_grad_enabled() and entropy_gradient):
        # Not log_probs.exp(): MKL takes ten times as long where an exponential vanishes.
        entropy = -(logits.softmax(-1) * log_probs).sum(-1)
    return log_probs.gather(-1, actions[:, None])[:, 0], entropy


def masked_logits(
    head: PolicyHead, hidden: Tensor, allowed: Tensor | None
) -> tuple[Tensor, Tensor | None]:
    """Logits of the tokens that may be said anywhere in a batch, forbidden ones at `FORBIDDEN`.

    A token that is allowed nowhere has no probability and no gradient, so that leaving it out
    changes nothing; where masks are narrow these are nearly all of a vocabulary.

    Args:
        head: of the policy.
        hidden: (N, d).
        allowed: (N, V) bool; None allows all.

    Returns:
        Logits (N, K), and their tokens (K,) in ascending order; None for all of them, K = V.
    """
    used = None if allowed is None else _used(head, allowed)
    return _logits(head, hidden, allowed, used), used


def _logits(
    head: PolicyHead, hidden: Tensor, allowed: Tensor | None, used: Tensor | None
) -> Tensor:
    """Logits (N, K) of the tokens `used` (K,), or of all; masks as of `log_probs_of`."""
    logits = head(hidden, used)
    if allowed is None:
        return logits
    if allowed.dtype == torch.uint8:
        allowed = unpacked_bits(allowed, head.weight.shape[0], used)
    elif used is not None:
        allowed = allowed[:, used]
    return logits.masked_fill(~allowed, FORBIDDEN)


def _used(head: PolicyHead, allowed: Tensor, actions: Tensor | None = None) -> Tensor | None:
    """Tokens (K,) that are allowed in some row, or chosen; None where it is most of V.

    On a GPU their number has to be waited for, which few logits are not worth.
    """
    rows, count = len(allowed), head.weight.shape[0]
    on_host = allowed.device.type == "cpu"
    if not rows or (not on_host and rows * count < WORTH_WAITING):
        return None
    found = []
    for piece in allowed.split(max(MOST_LOGITS // count, 1)):
        masks = unpacked_bits(piece, count) if piece.dtype == torch.uint8 else piece
        # PyTorch's own takes five times as long on a CPU.
        found.append(torch.from_numpy(masks.numpy().any(0)) if on_host else masks.any(0))
    anywhere = torch.stack(found).any(0)
    if actions is not None:
        anywhere[actions] = True
    used = anywhere.nonzero()[:, 0]
    return None if 2 * len(used) > count else used


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
    """Entries (N,) of numbers (N, V) at the tokens or acts `actions` (N,)."""
    return of_tokens.gather(1, actions[:, None])[:, 0]
