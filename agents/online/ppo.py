"""Proximal policy optimisation over whole dialogues (Schulman et al. 2017)."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import torch
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.type_aliases import GymEnv, Schedule
from stable_baselines3.common.utils import FloatSchedule, explained_variance
from stable_baselines3.common.vec_env import VecEnv
from torch import Tensor

from agents.online.advantages import gae, turn_ends, turn_level
from agents.online.base import SequenceAlgorithm
from agents.online.losses import clipped_surrogate, k3, value_loss
from agents.online.prefixes import PAD, lengths_of
from agents.online.sequences import SequenceBuffer
from dialgym.errors import one_of


class SequencePPO(SequenceAlgorithm):
    """PPO whose update reads each dialogue once.

    On the same rollout its loss and gradient are those of `stable_baselines3.PPO`. A step is one
    token that the learner says.

    Args:
        policy: `agents.GPTPolicy`, or its name.
        env: any env or VecEnv of token windows.
        learning_rate: a number or a schedule.
        n_steps: tokens said in each dialogue from one update to the next.
        batch_size: decisions of a minibatch, about: minibatches are made of whole dialogues. With
            several processes, of each.
        n_epochs: passes over a rollout.
        gamma, gae_lambda: discount and decay, by `advantage_level`.
        clip_range: of the probability ratio; a number or a schedule.
        clip_range_vf: of the values' change; None does not clip.
        normalize_advantage: to mean 0 and deviation 1 in each minibatch.
        advantage_level: "token", or "turn", where an utterance is one action.
        ent_coef: weight of the entropy; a number or a schedule.
        vf_coef: weight of the value loss.
        max_grad_norm: largest norm of a gradient.
        target_kl: a rollout's update stops when the policy is 1.5 times as far from the old one.
        reference_kl: price in reward of a nat of divergence from the policy that learning began
            with, taken off at every token; 0 keeps no such copy.
        reference_kl_target: divergence, in nats a token, that the price is steered towards
            (`KLControl`); None keeps the price.
        env_masks: ask the env for its `action_masks` at every step. None does so where the
            observation space has no automaton and the env has masks.
        autocast: "bf16" computes in bfloat16 where that is safe; None in float32.
        micro_batch_tokens: most tokens of one forward, padding included. Gradients of a minibatch
            are accumulated over as many forwards as it takes. None is 4,096 on a CPU and 65,536
            on a GPU.
        stats_window_size, tensorboard_log, policy_kwargs, verbose, seed, device: as everywhere in
            Stable-Baselines3.

    Raises:
        ValueError: a number or name that cannot be, another policy, or another kind of env.
    """

    figures: ClassVar[tuple[str, ...]] = (
        "loss",
        "policy_gradient_loss",
        "value_loss",
        "entropy",
        "approx_kl",
        "clip_fraction",
    )

    def __init__(
        self,
        policy: str | type[ActorCriticPolicy],
        env: GymEnv | str,
        learning_rate: float | Schedule = 3e-4,
        n_steps: int = 128,
        batch_size: int = 1024,
        n_epochs: int = 4,
        gamma: float = 1.0,
        gae_lambda: float = 0.95,
        clip_range: float | Schedule = 0.2,
        clip_range_vf: float | Schedule | None = None,
        normalize_advantage: bool = True,
        advantage_level: str = "token",
        ent_coef: float | Schedule = 0.0,
        vf_coef: float = 0.5,
        max_grad_norm: float = 0.5,
        target_kl: float | None = None,
        reference_kl: float = 0.0,
        reference_kl_target: float | None = None,
        env_masks: bool | None = None,
        autocast: str | None = None,
        micro_batch_tokens: int | None = None,
        stats_window_size: int = 100,
        tensorboard_log: str | None = None,
        policy_kwargs: dict[str, Any] | None = None,
        verbose: int = 0,
        seed: int | None = None,
        device: torch.device | str = "auto",
        _init_setup_model: bool = True,
    ) -> None:
        one_of("advantage_level", advantage_level, ["token", "turn"], "SequencePPO")
        self.clip_range = clip_range
        self.clip_range_vf = clip_range_vf
        self.normalize_advantage = normalize_advantage
        self.advantage_level = advantage_level
        super().__init__(
            policy,
            env,
            learning_rate=learning_rate,
            n_steps=n_steps,
            batch_size=batch_size,
            n_epochs=n_epochs,
            gamma=gamma,
            gae_lambda=gae_lambda,
            ent_coef=ent_coef,
            vf_coef=vf_coef,
            max_grad_norm=max_grad_norm,
            target_kl=target_kl,
            reference_kl=reference_kl,
            reference_kl_target=reference_kl_target,
            env_masks=env_masks,
            autocast=autocast,
            micro_batch_tokens=micro_batch_tokens,
            stats_window_size=stats_window_size,
            tensorboard_log=tensorboard_log,
            policy_kwargs=policy_kwargs,
            verbose=verbose,
            seed=seed,
            device=device,
            _init_setup_model=_init_setup_model,
        )

    def _setup_model(self) -> None:
        super()._setup_model()
        self.clip_range = FloatSchedule(self.clip_range)
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
        columns, price = self.sequences.columns, self.kl_control.coefficient
        kl = (columns["log_probs"] - columns["reference"]).cpu().numpy()
        total, count = self.ranks.sums(float(kl.sum()), len(kl))
        self.kl_control.update(total / count)
        self.logger.record("reference/kl", total / count)
        self.logger.record("reference/coefficient", price)
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
        with torch.no_grad(), self._precision():
            values = self.policy.predict_values(tokens.masked_fill(over[:, None], PAD))
        return values.float().cpu().numpy()[:, 0]

    def train(self) -> None:
        """Improve the policy with the last rollout."""
        remaining = self._current_progress_remaining
        self._clip_now = self.clip_range(remaining)  # type: ignore[operator]
        self._clip_vf_now = None if self.clip_range_vf is None else self.clip_range_vf(remaining)  # type: ignore[operator]
        self.logger.record("train/clip_range", self._clip_now)
        super().train()

    def _minibatch_columns(self, rows: Tensor) -> dict[str, Tensor]:
        advantages = self.sequences.columns["advantages"]
        if not self.normalize_advantage:
            return {}
        ours = advantages[rows].double()
        count, total, squares = self.ranks.sums(
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
        old = columns["log_probs"]
        policy = clipped_surrogate(log_prob, old, columns["advantages"], self._clip_now)
        value = value_loss(values, columns["targets"], columns["values"], self._clip_vf_now)
        with torch.no_grad():
            log_ratio = log_prob - old
            clipped = ((log_ratio.exp() - 1).abs() > self._clip_now).float()
        return policy + self.vf_coef * value - self._entropy_weight * entropy, {
            "policy_gradient_loss": policy,
            "value_loss": value,
            "entropy": entropy,
            "approx_kl": k3(log_ratio),
            "clip_fraction": clipped,
        }
