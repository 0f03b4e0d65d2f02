"""Staying near a reference policy: its log-probabilities, and how much distance costs."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from agents.models.lora import without_adapters
from agents.online.policies import chosen, token_log_probs


@dataclass
class KLControl:
    """The price of a nat of divergence, fixed or steered towards a target.

    After each rollout the coefficient is multiplied by 1 + rate * clip(kl / target - 1, +-clip)
    (Ziegler et al. 2019, section 2.2, whose clip is 0.2).

    Attributes:
        coefficient: the price now.
        target: nats a token that a rollout should keep; None leaves the coefficient alone.
        rate: how fast the coefficient follows.
        clip: the largest relative error that counts.
    """

    coefficient: float
    target: float | None = None
    rate: float = 0.1
    clip: float = 0.2

    def __post_init__(self) -> None:
        if self.coefficient < 0 or (self.target is not None and self.target <= 0):
            raise ValueError(
                "KL to the reference: expected a coefficient of at least 0 and a target above 0 "
                f"(or None), got {self.coefficient} and {self.target}"
            )

    def update(self, kl: float) -> None:
        """Take in the mean divergence of a rollout, in nats a token."""
        if self.target is not None:
            error = min(max(kl / self.target - 1, -self.clip), self.clip)
            self.coefficient *= 1 + self.rate * error


class Reference(nn.Module):
    """The language model of a GPT policy as it was, frozen.

    A copy; but of a policy with low-rank adapters the backbone itself, read without them.
    """

    def __init__(self, policy: Any) -> None:
        super().__init__()
        if policy.config["lora"] is None:
            # Together, so that a head tied to the embeddings stays tied to their copy.
            self.backbone, self.head = deepcopy((policy.backbone, policy.policy_head))
        else:
            self.head = deepcopy(policy.policy_head)
            self.adapted = [policy.backbone]  # in a list: no module of this one
        self.requires_grad_(False)

    def follow(self, policy: Any) -> None:
        """Become what the policy is now."""
        self.head.load_state_dict(policy.policy_head.state_dict())
        if policy.config["lora"] is None:
            self.backbone.load_state_dict(policy.backbone.state_dict())

    @torch.no_grad()
    def log_prob(
        self, tokens: Tensor, at: Tensor, actions: Tensor, allowed: Tensor | None
    ) -> Tensor:
        """Log-probabilities (N,); arguments as of `GPTActorCritic.evaluate_sequences`."""
        return chosen(token_log_probs(self.head, self._hidden(tokens, at), allowed), actions)

    def _hidden(self, tokens: Tensor, at: Tensor) -> Tensor:
        if not hasattr(self, "adapted"):
            return self.backbone(tokens, at)
        with without_adapters(self.adapted[0]):
            return self.adapted[0](tokens, at)
