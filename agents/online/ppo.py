"""Proximal policy optimisation over whole dialogues (Schulman et al. 2017)."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.type_aliases import GymEnv, Schedule
from stable_baselines3.common.utils import FloatSchedule, explained_variance
from stable_baselines3.common.vec_env import VecEnv
from torch import Tensor

from agents.buffers.sequences import SequenceBuffer
from agents.models.prefixes import PAD, lengths_of
from agents.online.advantages import gae, turn_ends, turn_level
from agents.online.base import SequenceAlgorithm
from agents.online.losses import value_loss
from dialgym.errors import one_of


class SequencePPO(SequenceAlgorithm):
    """PPO whose update reads each dialogue once.

    On the same rollout its loss and gradient are those of `stable_baselines3.PPO`. A step is one
    token that the learner says.

    `reference_kl` is taken off the reward at every token.

    Args:
        policy, env: as of `SequenceAlgorithm`.
        gamma, gae_lambda: discount and decay, by `advantage_level`.
        clip_range_vf: of the values' change; None does not clip.
        normalize_advantage: to mean 0 and deviation 1 in each minibatch.
        advantage_level: "token", or "turn", where an utterance is one action.
        vf_coef: weight of the value loss.
        kwargs: further arguments of `SequenceAlgorithm`.

    Raises:
        ValueError: a name that cannot be, or as of `SequenceAlgorithm`.
    """

    def __init__(
        self,
        policy: str | type[ActorCriticPolicy],
        env: GymEnv | str,
        gamma: float = 1.0,
        gae_lambda: float = 0.95,
        clip_range_vf: float | Schedule | None = None,
        normalize_advantage: bool = True,
        advantage_level: str = "token",
        vf_coef: float = 0.5,
        **kwargs: Any,
    ) -> None:
        one_of("advantage_level", advantage_level, ["token", "turn"], "SequencePPO")
        self.clip_range_vf = clip_range_vf
        self.normalize_advantage = normalize_advantage
        self.advantage_level = advantage_level
        own = {"gamma": gamma, "gae_lambda": gae_lambda, "vf_coef": vf_coef}
        super().__init__(policy, env, hyperparameters=own, **kwargs)

    def _setup_model(self) -> None:
        super()._setup_model()
        if self.clip_range_vf is not None:
            self.clip_range_vf = FloatSchedule(self.clip_range_vf)

    def collect_rollouts(  # type: ignore[override]
        self,
        env: VecEnv,
        callback: BaseCallback,
        rollout_buffer: SequenceBuffer,
        n_rollout_steps: int,
    ) -> bool:
        """Say `n_rollout_steps` tokens in each dialogue; False when a callback asked to stop."""
        self.policy.set_training_mode(False)
        rollout_buffer.reset()
        callback.on_rollout_start()
        truncated: list[tuple[int, int]] = []
        last_seen: list[np.ndarray] = []
        for step in range(n_rollout_steps):
            ended = self._step(env, callback)
            if ended is None:
                return False
            for row, info in ended.items():
                if info.get("TimeLimit.truncated", False):
                    truncated.append((step, row))
                    last_seen.append(info["terminal_observation"])
        rewards = rollout_buffer.steps("rewards")
        if truncated:
            rewards[tuple(zip(*truncated))] += self.gamma * self._values_of(np.stack(last_seen))
        self._finish(rewards)
        callback.update_locals(locals())
        callback.on_rollout_end()
        return True

    def _finish(self, rewards: np.ndarray) -> None:
        """From the rollout in the buffer to sequences with advantages and value targets."""
        everything = np.ones(rewards.shape, bool)
        values = self.rollout_buffer.steps("values")
        self.sequences = self._make_sequences(everything, values=values)
        if self.reference:
            rewards = rewards - self._price_of_divergence(rewards.shape)
        advantages, targets = self._advantages(rewards, values)
        self.sequences.add("advantages", advantages)
        self.sequences.add("targets", targets)
        explained = explained_variance(values.flatten(), targets.flatten())
        self.logger.record("train/explained_variance", float(explained))

    def _price_of_divergence(self, shape: tuple[int, ...]) -> np.ndarray:
        """coefficient (log pi - log reference) of every token said, (n_steps, n_envs)."""
        price = self.kl_control.coefficient
        kl = self._steer().cpu().numpy()
        grid = np.zeros(shape, np.float32)
        grid.reshape(-1)[self.sequences.steps] = price * kl
        return grid

    def _advantages(self, rewards: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Advantages and value targets, (n_steps, n_envs) both."""
        buffer = self.rollout_buffer
        dones = buffer.steps("dones")
        last_values = self._last_values(dones[-1])
        if self.advantage_level == "turn":
            last_lengths = lengths_of(self._tokens(self._last_obs)).cpu().numpy()
            ends = turn_ends(buffer.steps("lengths"), last_lengths, dones)
            return turn_level(
                rewards, values, dones, last_values, ends, self.gamma, self.gae_lambda
            )
        advantages = gae(rewards, values, dones, last_values, self.gamma, self.gae_lambda)
        return advantages, advantages + values

    def _last_values(self, done: np.ndarray) -> np.ndarray:
        """Values (n_envs,) of what follows the rollout; those of dialogues just begun are not read.

        The update makes all that is cached worthless: a new dialogue's beginning would be read here
        for nothing.
        """
        tokens = self._tokens(self._last_obs)
        over = torch.from_numpy(np.asarray(done, bool)).to(self.device)
        with torch.no_grad(), self.updater.precision():
            values = self.policy.predict_values(tokens.masked_fill(over[:, None], PAD))
        return values.float().cpu().numpy()[:, 0]

    def train(self) -> None:
        """Improve the policy with the last rollout."""
        clip = self.clip_range_vf
        self._clip_vf_now = clip and clip(self._current_progress_remaining)  # type: ignore[operator]
        super().train()

    def _minibatch_columns(self, rows: Tensor) -> dict[str, Tensor]:
        advantages = self.sequences.columns["advantages"]
        if not self.normalize_advantage:
            return {}
        ours = advantages[rows].double()
        count, total, squares = self.processes.sums(
            len(rows), float(ours.sum()), float(ours.square().sum())
        )
        if count < 2:
            return {}
        mean = total / count
        deviation = max((squares - count * mean**2) / (count - 1), 0.0) ** 0.5
        return {"advantages": (advantages - mean) / (deviation + 1e-8)}

    def _loss(
        self, columns: dict[str, Tensor], values: Tensor, log_prob: Tensor, entropy: Tensor
    ) -> tuple[Tensor, dict[str, Tensor]]:
        policy, figures = self._surrogate(columns, log_prob)
        value = value_loss(values, columns["targets"], columns["values"], self._clip_vf_now)
        loss = policy + self.vf_coef * value - self._entropy_weight * entropy
        return loss, {**figures, "value_loss": value, "entropy": entropy}
