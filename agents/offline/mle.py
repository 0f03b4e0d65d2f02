"""MLE: imitation of vectors of acts, a weighted binary cross-entropy of each entry."""

from __future__ import annotations

from typing import Any, Unpack

import torch
from gymnasium import spaces
from stable_baselines3.common.policies import BasePolicy
from torch import Tensor

from agents.buffers.stored import DecisionBatch
from agents.models.bernoulli import entry_log_probs
from agents.offline.algorithm import Losses
from agents.offline.bc import BC, BCOptions
from agents.policies.belief import BeliefPolicy


class MLE(BC):
    """Cloning of several acts at once, in which an act that was chosen may count for more.

    The loss of a decision is -sum_i w_i log p_i(a_i | s) over the entries i of the action that
    could be 1, with w_i = `pos_weight` where a_i = 1 and 1 elsewhere. With a weight of 1 it is
    `BC`. Of more than two hundred acts about three are chosen in a turn, and what an expert chooses
    at random among several has a probability below 1/2: with w the entry is chosen greedily from
    p > 1 / (1 + w) on. Source: ConvLab's MLE policy (Zhu et al. 2020, arXiv 2002.04793), w = 5.

    Args:
        pos_weight: w.
        value_coef: weight of the squared error of the value to the return, so that the clone has a
            critic for online learning to begin with; 0 leaves it untrained.
        policy, env, dataset: as of `BC`.
        kwargs: further arguments of `BC`.

    Where one act, or token, is chosen at a time it is `BC`, whatever the weights.

    Raises:
        ValueError: as of `BC`, or a number that cannot be.
    """

    def __init__(
        self,
        policy: str | type[BasePolicy],
        env: Any,
        dataset: Any = None,
        pos_weight: float = 5.0,
        value_coef: float = 0.0,
        **kwargs: Unpack[BCOptions],
    ) -> None:
        self.pos_weight, self.value_coef = pos_weight, value_coef
        super().__init__(policy, env, dataset, **kwargs)

    def loss(self, batch: DecisionBatch) -> Losses:
        policy, actions = self.policy, batch.actions
        if not isinstance(policy.action_space, spaces.MultiBinary):
            return super().loss(batch)
        assert isinstance(policy, BeliefPolicy)
        beliefs = batch.observations.flatten(0, 1)[batch.at]
        distribution = policy.get_distribution(beliefs, batch.allowed)  # type: ignore[arg-type]
        log_probs = entry_log_probs(distribution.logits, actions)  # (n, A), 0 where forbidden
        weighted = torch.where(actions.bool(), self.pos_weight, 1.0) * log_probs
        losses = -weighted.sum(-1) * batch.is_action
        metrics = {"entropy": distribution.entropy() * batch.is_action}
        metrics |= agreement(distribution.mode(), actions, batch.is_action)
        if self.value_coef:
            errors = (policy.predict_values(beliefs)[:, 0] - batch.returns) ** 2 * batch.is_action
            losses = losses + self.value_coef * errors
            metrics["value_loss"] = errors.detach()
        return losses, metrics


def agreement(greedy: Tensor, actions: Tensor, is_action: Tensor) -> dict[str, Tensor]:
    """Agreement of greedy choices (n, A) with the data: exact, and F1 of the acts, each (n,)."""
    chosen, wanted = greedy.bool(), actions.bool()
    both = (chosen & wanted).sum(-1)
    f1 = (2 * both / (chosen.sum(-1) + wanted.sum(-1)).clamp(min=1)).where(
        (chosen | wanted).any(-1), torch.ones(())
    )
    exact = (chosen == wanted).all(-1).float()
    return {"exact": exact * is_action, "act_f1": f1 * is_action}
