"""The distribution of the next token: sampled by inversion, and its nucleus."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from stable_baselines3.common.distributions import CategoricalDistribution
from torch import Tensor
from torch.distributions import Categorical


class TokenDistribution(CategoricalDistribution):
    """Stable-Baselines3's distribution of discrete actions, with another sampler."""

    def proba_distribution(self, action_logits: Tensor) -> TokenDistribution:
        """The distribution with logits (B, V)."""
        self.distribution = InverseCategorical(logits=action_logits, validate_args=False)
        return self


class InverseCategorical(Categorical):
    """`Categorical`, sampled by inversion of its cumulative distribution.

    Each sample takes one uniform number, where PyTorch draws an exponential for every token. Sums
    are in float64: rounding moves no token's probability by more than 1e-15.
    """

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Tokens of shape `sample_shape` + (B,); none of probability 0.

        Raises:
            ValueError: probabilities are not finite.
        """
        cumulative = self.probs.detach().cumsum(-1, dtype=torch.float64)  # (B, V)
        total = cumulative[..., -1:]
        if not total.isfinite().all():
            raise ValueError(
                "Sampling: the probabilities of tokens are not finite, so the weights or what they "
                "compute have overflowed; lower the learning rate, or use float32"
            )
        # In (0, 1]: the first sum that reaches it belongs to a token of positive probability.
        shape = (*total.shape[:-1], math.prod(sample_shape))
        uniform = 1 - torch.rand(shape, dtype=total.dtype, device=total.device)
        chosen = torch.searchsorted(cumulative, uniform * total)
        return chosen.movedim(-1, 0).reshape(*sample_shape, *shape[:-1])


def nucleus(logits: Tensor, top_p: float, at_least: int = 1) -> Tensor:
    """The fewest likeliest tokens that together have a probability of `top_p`: (B, V) bool.

    Holtzman et al. 2020, section 3.1.

    Args:
        logits: (B, V).
        top_p: 1 or more keeps every token.
        at_least: so many of the likeliest are kept in any case.
    """
    if top_p >= 1:
        return torch.ones_like(logits, dtype=torch.bool)
    ordered, order = logits.sort(-1, descending=True)
    shares = ordered.softmax(-1)
    likelier = shares.cumsum(-1) - shares  # the probability of all that is likelier
    kept = likelier < top_p
    kept[:, :at_least] = True  # however sums are rounded
    return torch.zeros_like(kept).scatter_(1, order, kept)
