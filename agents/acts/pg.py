"""PG: REINFORCE over dialogue acts, with rollouts of whole dialogues."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np
import torch
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.type_aliases import Schedule
from stable_baselines3.common.vec_env import VecEnv
from torch import Tensor
from torch.nn.functional import mse_loss

from agents.acts.base import ActAlgorithm, ActRollout, RolloutOptions
from agents.returns import discounted_returns
from dialgym.errors import one_of

BASELINES = ("none", "mean", "value")


class PG(ActAlgorithm):
    """Policy gradient of returns, -mean (G_t - b) log pi(a_t | s_t), G_t = r_t + gamma G_t+1.

    Source: Williams (1992); ConvLab's PG has gamma 0.99, no baseline and five passes over each
    rollout without a correction for what they change (`n_epochs=5, baseline="none",
    normalize_advantage=False`). A dialogue that a limit cuts off ends there; with the values as
    baseline it is bootstrapped. Dialogues that end before the others of a rollout rest.

    Args:
        policy, env: as of `ActAlgorithm`.
        baseline: b: "none", the "mean" return of the rollout's decisions, or the "value" that the
            policy's critic learns, V(s_t).
        value_learning_rate: of the critic, a number or a schedule; None takes `learning_rate`.
        kwargs: further arguments of `ActAlgorithm`.

    Raises:
        ValueError: as of `ActAlgorithm`, or another baseline.
    """

    def __init__(
        self,
        policy: str | type[BasePolicy],
        env: Any,
        *,
        baseline: str = "mean",
        value_learning_rate: float | Schedule | None = None,
        **kwargs: Unpack[RolloutOptions],
    ) -> None:
        one_of("baseline", baseline, BASELINES, "PG")
        self.baseline, self.value_learning_rate = baseline, value_learning_rate
        super().__init__(policy, env, **kwargs)

    def loss(self, batch: ActRollout) -> tuple[Tensor, dict[str, Tensor]]:
        values, log_prob, entropy = self.policy.evaluate_actions(
            batch.observations, batch.actions, batch.masks
        )
        assert entropy is not None
        policy_loss = -(self.normalized(batch.weights) * log_prob).mean()
        loss = policy_loss - self.ent_coef * entropy.mean()
        metrics = {"policy_gradient_loss": policy_loss, "entropy": entropy.mean()}
        if self.baseline == "value":
            value_loss = mse_loss(values[:, 0], batch.returns)
            loss = loss + self.vf_coef * value_loss
            metrics["value_loss"] = value_loss
        return loss, metrics

    def collect(self, env: VecEnv, callback: BaseCallback) -> bool:
        held = self.hold(env, callback, env.reset())
        if held is None:
            return False
        found = discounted_returns(held.rewards, self.gamma)[held.played]
        base = {"none": 0.0, "mean": found.mean(), "value": held.values[held.played]}[self.baseline]
        returns = (torch.as_tensor(array) for array in (found - base, found))
        columns = (column.to(self.device) for column in (*held.decisions(), *returns))
        self.rollout = ActRollout(*columns)
        return True

    @torch.no_grad()
    def _final_values(self, infos: list[dict[str, Any]], dones: np.ndarray) -> np.ndarray:
        """Bootstrap values (n_envs,): gamma V of the next state where a dialogue was truncated."""
        values = np.zeros(len(dones), np.float32)
        if self.baseline == "value":
            for row in np.flatnonzero(dones).tolist():
                if infos[row].get("TimeLimit.truncated"):
                    last, _ = self.policy.obs_to_tensor(infos[row]["terminal_observation"])
                    values[row] = self.gamma * float(self.policy.predict_values(last))
        return values
