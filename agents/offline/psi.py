"""Psi-learning (Jaques et al. 2017): Q-learning under a KL penalty to the cloned policy."""

from __future__ import annotations

from typing import Any, ClassVar, Unpack

import torch
import torch.nn.functional as F
from stable_baselines3.common.policies import BasePolicy
from torch import Tensor

from agents.buffers.stored import DecisionBatch
from agents.models.action_outputs import gather_and_logsumexp
from agents.offline.ilql import ILQL, Estimates, QOptions


class PsiLearning(ILQL):
    """Q regresses to r / c + log p(a | s) + gamma log sum_a exp target Q(s', a).

    p is the cloned policy, learned beside (equation 8 there, with Huber's loss as there); no
    gradient reaches it from here. Speech is the softmax of Q, V being a shift that changes nothing.

    Args:
        reward_scale: c, the reward that is worth one nat.
        kwargs: as of `ILQL`.
    """

    decoding_defaults: ClassVar[dict[str, float]] = {"policy_weight": 0.0, "beta": 1.0}

    def __init__(
        self,
        policy: str | type[BasePolicy],
        env: Any,
        dataset: Any = None,
        reward_scale: float = 0.1,
        expectile: float = 0.5,
        cql_weight: float = 0.0,
        **kwargs: Unpack[QOptions],
    ) -> None:
        self.reward_scale = reward_scale
        super().__init__(policy, env, dataset, expectile=expectile, cql_weight=cql_weight, **kwargs)

    def q_targets(self, batch: DecisionBatch, estimates: Estimates) -> Tensor:
        """r / c + log p(a | s) + gamma log sum_a exp min target Q(s', a) (n,)."""
        rewards = batch.rewards / self.reward_scale + estimates.log_prob.detach()
        return super().q_targets(batch._replace(rewards=rewards), estimates)

    def target_values(
        self, batch: DecisionBatch, target_hidden: Tensor
    ) -> tuple[Tensor, Tensor | None]:
        """Min target Q (n,) of the chosen actions, and log sum_a exp min target Q(s, a) (n,)."""
        target_q = self.policy.target_q(target_hidden)
        said, total = gather_and_logsumexp(target_q, batch.actions, batch.allowed)
        return said, total

    def q_error(self, errors: Tensor) -> Tensor:
        """Huber's loss."""
        return F.huber_loss(errors, torch.zeros_like(errors), reduction="none")
