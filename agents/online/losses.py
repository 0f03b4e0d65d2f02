"""Losses of single decisions, (n,) each: the algorithms take their means."""

from __future__ import annotations

from torch import Tensor


def clipped_surrogate(
    log_prob: Tensor, old_log_prob: Tensor, advantages: Tensor, clip_range: float
) -> Tensor:
    """PPO's pessimistic policy loss (Schulman et al. 2017, equation 7)."""
    ratio = (log_prob - old_log_prob).exp()
    clipped = ratio.clamp(1 - clip_range, 1 + clip_range)
    return -(advantages * ratio).minimum(advantages * clipped)


def value_loss(
    values: Tensor, targets: Tensor, old_values: Tensor, clip_range: float | None
) -> Tensor:
    """Squared error; with `clip_range`, of values kept that near to the old ones."""
    if clip_range is not None:
        values = old_values + (values - old_values).clamp(-clip_range, clip_range)
    return (targets - values).square()


def k3(log_ratio: Tensor) -> Tensor:
    """KL divergence from samples x of p, never negative: exp(r) - 1 - r of r = log q(x) / p(x).

    It is unbiased (Schulman 2020, "Approximating KL divergence").
    """
    return log_ratio.exp() - 1 - log_ratio
