"""Several acts chosen at once: independent Bernoulli entries, some of them forbidden.

sb3-contrib's own distribution of `MultiBinary` actions is a list of categorical ones, an object for
each entry; over the 209 acts of a multi-domain dialogue that costs more than the networks. This one
is one tensor, with the same probabilities.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from sb3_contrib.common.maskable.distributions import MaskableDistribution
from torch import Tensor, nn
from torch.nn.functional import softplus

from agents.models.masking import FORBIDDEN


class MaskedBernoulli(MaskableDistribution):
    """A distribution over vectors of 0 and 1: log p(a) = -sum_i softplus((1 - 2 a_i) logit_i).

    Args:
        entries: A, how many there are.
    """

    logits: Tensor

    def __init__(self, entries: int) -> None:
        super().__init__()
        self.entries = entries

    def proba_distribution_net(self, latent_dim: int) -> nn.Module:  # type: ignore[override]
        """The layer from hidden states (..., d) to logits (..., A)."""
        return nn.Linear(latent_dim, self.entries)

    def proba_distribution(self, action_logits: Tensor) -> MaskedBernoulli:  # type: ignore[override]
        """Take logits (n, A)."""
        self.logits = action_logits.view(-1, self.entries)
        return self

    def apply_masking(self, masks: np.ndarray | Tensor | None) -> None:
        """Fix the entries that have no choice.

        Args:
            masks: (n, 2 A) bool, of each entry whether it can be 0 and whether it can be 1, as
                sb3-contrib has it; or (n, A), whether it can be 1. None changes nothing.
        """
        if masks is not None:
            can_be_0, can_be_1 = both_choices(masks, self.logits)
            fixed = torch.where(can_be_1, -FORBIDDEN, FORBIDDEN)
            self.logits = torch.where(can_be_0 & can_be_1, self.logits, fixed)

    def log_prob(self, actions: Tensor) -> Tensor:
        """(n,) of actions (n, A)."""
        return entry_log_probs(self.logits, actions).sum(-1)

    def entropy(self) -> Tensor:
        """(n,) in nats."""
        return (softplus(self.logits) - self.logits * torch.sigmoid(self.logits)).sum(-1)

    def sample(self) -> Tensor:
        """(n, A) of 0 and 1, drawn."""
        return torch.bernoulli(torch.sigmoid(self.logits))

    def mode(self) -> Tensor:
        """(n, A): each entry as it is likelier."""
        return (self.logits > 0).to(self.logits.dtype)

    def actions_from_params(self, action_logits: Tensor, deterministic: bool = False) -> Tensor:  # type: ignore[override]
        """Actions (n, A) by logits (n, A)."""
        return self.proba_distribution(action_logits).get_actions(deterministic)

    def log_prob_from_params(self, action_logits: Tensor) -> tuple[Tensor, Tensor]:  # type: ignore[override]
        """Actions drawn by logits (n, A), and their log-probabilities (n,)."""
        actions = self.actions_from_params(action_logits)
        return actions, self.log_prob(actions)


def entry_log_probs(logits: Tensor, actions: Tensor) -> Tensor:
    """(n, A): log-probability of each entry of actions (n, A) under logits (n, A)."""
    return -softplus((1 - 2 * actions.to(logits.dtype)) * logits)


def logit(rate: float) -> float:
    """The logit of a probability."""
    return math.log(rate / (1 - rate))


def both_choices(masks: Any, like: Tensor) -> tuple[Tensor, Tensor]:
    """The entries that can be 0, and those that can be 1, each (n, A) bool, from either form."""
    found = torch.as_tensor(masks, device=like.device).bool()
    if found.numel() == like.numel():
        can_be_1 = found.reshape(like.shape)
        return torch.ones_like(can_be_1), can_be_1
    pairs = found.reshape(*like.shape, 2)
    return pairs[..., 0], pairs[..., 1]
