"""A trust region around a slow average of the policy, in closed form.

Source: Wang et al. (2017), arXiv 1611.01224, section 3.3.
"""

from __future__ import annotations

from copy import deepcopy

import torch
from stable_baselines3.common.utils import polyak_update
from torch import Tensor, nn

from agents.buffers.dialogues import DialogueSample
from agents.policies.belief import BeliefPolicy


def projected(gradient: Tensor, kl_gradient: Tensor, delta: float) -> Tensor:
    """z of min 1/2 |g - z|^2 with k z <= delta, in each row: g - max(0, (k g - delta) / |k|^2) k.

    Args:
        gradient: g (N, A).
        kl_gradient: k (N, A), of KL(average || policy).
        delta: how far it may rise, to first order.
    """
    above = (kl_gradient * gradient).sum(-1, keepdim=True) - delta
    squared = kl_gradient.square().sum(-1, keepdim=True)
    return gradient - (above.clamp(min=0) / squared.clamp(min=1e-12)) * kl_gradient


class TrustRegion(nn.Module):
    """Bends gradients of a policy so that it stays near its own slow average.

    The constraint is one of each decision, on the gradient with respect to its logits, as in the
    paper (PyDial's is one of the whole batch, on that of the parameters).

    Args:
        policy: at first the average is a copy of it.
        delta: how far KL(average || policy) may rise in a step, to first order.
        tau: how much of the policy goes into the average at each step.
    """

    def __init__(self, policy: BeliefPolicy, delta: float, tau: float) -> None:
        super().__init__()
        self.average = deepcopy(policy).requires_grad_(False)
        self.delta, self.tau = delta, tau

    def loss(self, batch: DialogueSample, logits: Tensor, gain: Tensor) -> Tensor:
        """A loss whose gradient at logits (N, A) is the projected one of raising gain (N,)."""
        (gradient,) = torch.autograd.grad(gain.sum(), logits, retain_graph=True)
        with torch.no_grad():
            average, _ = self.average.logits_and_values(batch.observations, batch.masks)
            # Of KL(p || softmax(x)) by x.
            kl_gradient = logits.softmax(-1) - average.softmax(-1)
            wanted = projected(gradient, kl_gradient, self.delta)
        return -(wanted * logits).sum(-1).mean()

    def begin(self, policy: BeliefPolicy) -> None:
        """Make the average equal to a policy."""
        self.average.load_state_dict(policy.state_dict())

    def follow(self, policy: BeliefPolicy) -> None:
        """Let the average follow the policy."""
        polyak_update(policy.parameters(), self.average.parameters(), self.tau)
