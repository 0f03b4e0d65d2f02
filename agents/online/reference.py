"""Staying near a reference policy: its log-probabilities, and how much distance costs."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from agents.models.heads import PolicyHead
from agents.models.lora import without_adapters
from agents.policies.gpt import chosen, token_log_probs
from agents.storage.values import storable
from dialgym.errors import finite_number


@storable
@dataclass
class KLControl:
    """The price of a nat of divergence, fixed or steered towards a target.

    After each rollout the coefficient is multiplied by 1 + speed * clip(kl / target - 1, +-clip),
    where speed is `rate`, or with a horizon the rollout's tokens / horizon (Ziegler et al. 2019,
    section 2.2, whose clip is 0.2).

    Attributes:
        coefficient: the price now.
        target: nats a token that a rollout should keep; None leaves the coefficient alone.
        horizon: tokens in which an error moves the coefficient by as much again; None goes by
            rollouts, whatever their size.
        clip: the largest relative error that counts.
        rate: how fast the coefficient follows, by rollouts.

    Raises:
        ValueError: a number that cannot be.
    """

    coefficient: float
    target: float | None = None
    horizon: int | None = None
    clip: float = 0.2
    rate: float = 0.1

    def __post_init__(self) -> None:
        for name in ("coefficient", "target", "horizon", "clip", "rate"):
            if getattr(self, name) is not None:
                finite_number(f"KL to the reference: {name}", getattr(self, name))
        if self.coefficient < 0 or (self.target is not None and self.target <= 0):
            raise ValueError(
                "KL to the reference: expected a coefficient of at least 0 and a target above 0 "
                f"(or None), got {self.coefficient} and {self.target}"
            )
        if self.clip <= 0 or (self.horizon is not None and self.horizon < 1):
            raise ValueError(
                "KL to the reference: expected a clip above 0 and a horizon of at least 1 token "
                f"(or None), got {self.clip} and {self.horizon}"
            )

    def update(self, kl: float, tokens: int) -> None:
        """Take in a rollout: its mean divergence in nats a token, and how many tokens it had.

        One rollout at most halves the price: beyond horizon / clip tokens it would turn negative.
        """
        if self.target is not None:
            error = min(max(kl / self.target - 1, -self.clip), self.clip)
            speed = self.rate if self.horizon is None else tokens / self.horizon
            self.coefficient *= max(1 + speed * error, 0.5)


class Reference(nn.Module):
    """A frozen language model: a backbone and its policy head.

    Args:
        backbone: as of `agents.models.backbone.Backbone`.
        head: of the policy.
        adapted: a policy's backbone with low-rank adapters, read without them in place of a
            `backbone` of our own: a reference without a copy.
    """

    def __init__(self, backbone: Any, head: PolicyHead, adapted: Any = None) -> None:
        super().__init__()
        self.backbone, self.head = backbone, head
        self.adapted = [adapted]  # in a list: no module of this one
        self.requires_grad_(False)

    @classmethod
    def beginning(cls, policy: Any) -> Reference:
        """The language model of a policy as it is now, or beneath its adapters."""
        if policy.config["lora"] is not None:
            return cls(None, deepcopy(policy.policy_head), policy.backbone)
        # Together, so that a head tied to the embeddings stays tied to their copy.
        return cls(*deepcopy((policy.backbone, policy.policy_head)))

    def follow(self, policy: Any) -> None:
        """Become what the policy is now."""
        self.head.load_state_dict(policy.policy_head.state_dict())
        if self.backbone is not None:
            self.backbone.load_state_dict(policy.backbone.state_dict())

    @torch.no_grad()
    def log_prob(
        self, tokens: Tensor, at: Tensor, actions: Tensor, allowed: Tensor | None
    ) -> Tensor:
        """Log-probabilities (N,); arguments as of `GPTActorCritic.evaluate_sequences`."""
        return chosen(token_log_probs(self.head, self._hidden(tokens, at), allowed), actions)

    def _hidden(self, tokens: Tensor, at: Tensor) -> Tensor:
        if self.backbone is not None:
            return self.backbone(tokens, at)
        with without_adapters(self.adapted[0]):
            return self.adapted[0](tokens, at)
