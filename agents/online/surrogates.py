"""Surrogates of the policy gradient: losses of single decisions, and how far the policy has moved.

Each takes a batch of n decisions, their log-probabilities (n,) now, and how far below and above 1 a
ratio pi(a | s) / pi_old(a | s) may count; and gives (n,) losses and metrics.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import torch
from torch import Tensor

from agents.buffers.sequences import Batch

Range = tuple[float, float]
Surrogate = Callable[[Batch, Tensor, Range], tuple[Tensor, dict[str, Tensor]]]


def token_surrogate(
    batch: Batch, log_prob: Tensor, clip_range: Range
) -> tuple[Tensor, dict[str, Tensor]]:
    """PPO's pessimistic loss (Schulman et al. 2017, equation 7), a ratio each decision.

    -min(ratio A, clip(ratio, 1 - low, 1 + high) A).
    """
    log_ratio = log_prob - batch.log_probs
    loss = _pessimistic(batch, log_ratio, clip_range)
    return loss, _metrics(loss, log_ratio, clip_range)


def sequence_surrogate(
    batch: Batch, log_prob: Tensor, clip_range: Range
) -> tuple[Tensor, dict[str, Tensor]]:
    """The same of whole dialogues: GSPO (Zheng et al. 2025, arXiv 2507.18071, equations 5 and 13).

    The ratio of a dialogue is exp of the mean log ratio of its decisions. Its value stands at each
    of them, and the gradient is that of the decision, so that advantages may differ within it.
    """
    log_ratio = log_prob - batch.log_probs
    row = batch.at // batch.tokens.shape[1]
    sums = log_ratio.new_zeros(batch.tokens.shape[0], 2)
    sums.index_add_(0, row, torch.stack([log_ratio, torch.ones_like(log_ratio)], 1).detach())
    mean = (sums[:, 0] / sums[:, 1].clamp(min=1))[row]
    loss = _pessimistic(batch, mean + log_prob - log_prob.detach(), clip_range)
    return loss, _metrics(loss, mean, clip_range)


def weight_surrogate(
    batch: Batch, log_prob: Tensor, clip_range: Range
) -> tuple[Tensor, dict[str, Tensor]]:
    """-sg(clip(ratio)) A log pi: CISPO (MiniMax 2025, arXiv 2506.13585, equation 4).

    A ratio out of range bounds what a decision weighs, and does not silence it.
    """
    log_ratio = log_prob - batch.log_probs
    weight = _clipped(log_ratio.detach().exp(), clip_range)
    loss = -weight * batch.advantages * log_prob
    return loss, _metrics(loss, log_ratio, clip_range)


SURROGATES: Mapping[str, Surrogate] = MappingProxyType(
    {"token": token_surrogate, "sequence": sequence_surrogate, "weight": weight_surrogate}
)


def _pessimistic(batch: Batch, log_ratio: Tensor, clip_range: Range) -> Tensor:
    ratio = log_ratio.exp()
    clipped = _clipped(ratio, clip_range)
    return -(batch.advantages * ratio).minimum(batch.advantages * clipped)


def _clipped(ratio: Tensor, clip_range: Range) -> Tensor:
    low, high = clip_range
    return ratio.clamp(1 - low, 1 + high)


@torch.no_grad()
def _metrics(loss: Tensor, log_ratio: Tensor, clip_range: Range) -> dict[str, Tensor]:
    ratio = log_ratio.exp()
    return {
        "policy_gradient_loss": loss,
        "approx_kl": ratio - 1 - log_ratio,  # Schulman 2020, "Approximating KL divergence": k3
        "clip_fraction": (ratio != _clipped(ratio, clip_range)).float(),
    }
