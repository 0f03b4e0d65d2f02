"""Policy gradients with the mean return of a group as baseline: GRPO, RLOO, REINFORCE."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import torch
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.type_aliases import GymEnv, Schedule
from stable_baselines3.common.utils import FloatSchedule
from stable_baselines3.common.vec_env import VecEnv
from torch import Tensor

from agents.online.base import SequenceAlgorithm
from agents.online.losses import clipped_surrogate, k3
from agents.online.sequences import SequenceBuffer
from dialgym.errors import one_of

BASELINES = ("mean", "leave-one-out")


class GRPO(SequenceAlgorithm):
    """Group relative policy optimisation (Shao et al. 2024), without a value function.

    Each iteration plays one episode in every dialogue. Dialogues of a group begin alike (their env
    is reset with the same seed); an episode's advantage, at all its tokens, is its return less the
    group's baseline. Losses are averaged over tokens, so that long replies are not favoured (Yu et
    al. 2025, section 3.3).

    With `baseline="leave-one-out"`, `scale=False`, `n_epochs=1` it is RLOO (Ahmadian et al. 2024);
    with `group_size=None` too, REINFORCE with the batch's mean return as baseline.

    Args:
        policy: `agents.GPTPolicy`, or its name; its value head is left alone.
        env: any env or VecEnv of token windows; the number of dialogues must be a multiple of
            `group_size`.
        learning_rate: a number or a schedule.
        n_steps: most tokens said in an episode; what goes on beyond counts as it stands.
        batch_size: decisions of a minibatch, about: minibatches are made of whole dialogues. With
            several processes, of each.
        n_epochs: passes over a rollout.
        group_size: dialogues of a group; None makes all of them one group, each begun by itself.
        baseline: "mean" of the group, or of the group's other members ("leave-one-out").
        scale: divide advantages by the deviation of the group's returns.
        clip_range: of the probability ratio; a number or a schedule.
        ent_coef: weight of the entropy; a number or a schedule.
        max_grad_norm: largest norm of a gradient.
        target_kl: a rollout's update stops when the policy is 1.5 times as far from the old one.
        reference_kl: weight in the loss of the divergence from the policy that learning began with
            (estimator k3); 0 keeps no such copy.
        reference_kl_target: divergence, in nats a token, that the weight is steered towards
            (`KLControl`); None keeps the weight.
        env_masks, autocast, micro_batch_tokens: as of `SequencePPO`.
        stats_window_size, tensorboard_log, policy_kwargs, verbose, seed, device: as everywhere in
            Stable-Baselines3.

    Raises:
        ValueError: a number or name that cannot be, another policy, or another kind of env.
    """

    figures: ClassVar[tuple[str, ...]] = (
        "loss",
        "policy_gradient_loss",
        "entropy",
        "approx_kl",
        "clip_fraction",
        "reference_kl",
    )

    def __init__(
        self,
        policy: str | type[ActorCriticPolicy],
        env: GymEnv | str,
        learning_rate: float | Schedule = 3e-4,
        n_steps: int = 128,
        batch_size: int = 1024,
        n_epochs: int = 1,
        group_size: int | None = 8,
        baseline: str = "mean",
        scale: bool = True,
        clip_range: float | Schedule = 0.2,
        ent_coef: float | Schedule = 0.0,
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
        one_of("baseline", baseline, BASELINES, "GRPO")
        self.group_size = group_size
        self.baseline = baseline
        self.scale = scale
        self.clip_range = clip_range
        super().__init__(
            policy,
            env,
            learning_rate=learning_rate,
            n_steps=n_steps,
            batch_size=batch_size,
            n_epochs=n_epochs,
            gamma=1.0,
            gae_lambda=1.0,
            ent_coef=ent_coef,
            vf_coef=0.0,
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
        size = self.group_size
        if size is not None and (size < 2 or self.n_envs % size):
            raise ValueError(
                f"GRPO: group_size must be at least 2 and divide the number of dialogues, got "
                f"{size} and {self.n_envs}; None makes all of them one group"
            )

    def collect_rollouts(  # type: ignore[override]
        self,
        env: VecEnv,
        callback: BaseCallback,
        rollout_buffer: SequenceBuffer,
        n_rollout_steps: int,
    ) -> bool:
        """Play one episode in every dialogue; False when a callback asked to stop."""
        self.policy.set_training_mode(False)
        rollout_buffer.reset()
        callback.on_rollout_start()
        self._begin(env)
        playing = np.ones(env.num_envs, bool)
        kept: list[np.ndarray] = []
        while playing.any() and len(kept) < n_rollout_steps:
            kept.append(playing.copy())
            ended = self._step(env, callback)
            if ended is None:
                return False
            playing[list(ended)] = False
        self._finish(np.stack(kept))
        callback.update_locals(locals())
        callback.on_rollout_end()
        return True

    def _begin(self, env: VecEnv) -> None:
        """Reset all dialogues, those of a group with the same seed."""
        count = env.num_envs // (self.group_size or 1)
        seeds = np.repeat(self.rng.integers(2**31, size=count), self.group_size or 1)
        # Stable-Baselines3 has no public way to give each row a seed of its own choice.
        env.unwrapped._seeds = list(map(int, seeds))
        self._last_obs = env.reset()  # type: ignore[assignment]
        self._last_episode_starts = np.ones(env.num_envs, bool)

    def _finish(self, kept: np.ndarray) -> None:
        """From the rollout in the buffer to sequences with advantages."""
        returns = (self.rollout_buffer.steps("rewards") * kept).sum(0)
        self.sequences = self._make_sequences(kept)
        advantages = group_advantages(returns, self.group_size, self.baseline, self.scale)
        self.sequences.add("advantages", np.broadcast_to(advantages, kept.shape))

    def train(self) -> None:
        """Improve the policy with the last rollout."""
        self._clip_now = self.clip_range(self._current_progress_remaining)  # type: ignore[operator]
        if self.reference:
            self._steer()
        super().train()

    def _steer(self) -> None:
        """Move the weight of the divergence towards its target."""
        columns, weight = self.sequences.columns, self.kl_control.coefficient
        kl = columns["log_probs"] - columns["reference"]
        total, count = self.ranks.sums(float(kl.sum()), len(kl))
        self.kl_control.update(total / max(count, 1))
        self.logger.record("reference/kl", total / max(count, 1))
        self.logger.record("reference/coefficient", weight)

    def _loss(
        self, columns: dict[str, Tensor], values: Tensor, log_prob: Tensor, entropy: Tensor
    ) -> tuple[Tensor, dict[str, Tensor]]:
        old = columns["log_probs"]
        policy = clipped_surrogate(log_prob, old, columns["advantages"], self._clip_now)
        loss = policy - self._entropy_weight * entropy
        distance = torch.zeros_like(policy)
        if self.reference:
            distance = k3(columns["reference"] - log_prob)
            loss = loss + self.kl_control.coefficient * distance
        with torch.no_grad():
            log_ratio = log_prob - old
            clipped = ((log_ratio.exp() - 1).abs() > self._clip_now).float()
        return loss, {
            "policy_gradient_loss": policy,
            "entropy": entropy,
            "approx_kl": k3(log_ratio),
            "clip_fraction": clipped,
            "reference_kl": distance,
        }


def group_advantages(
    returns: np.ndarray, group_size: int | None, baseline: str, scale: bool
) -> np.ndarray:
    """Advantages (n,) float32 of episodes with `returns` (n,), groups standing side by side."""
    groups = returns.reshape(-1, group_size or len(returns))
    advantages = groups - groups.mean(1, keepdims=True)
    if baseline == "leave-one-out":
        advantages = advantages * groups.shape[1] / max(groups.shape[1] - 1, 1)
    if scale:
        advantages = advantages / (groups.std(1, keepdims=True) + 1e-6)
    return advantages.reshape(-1).astype(np.float32)
