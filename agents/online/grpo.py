"""Policy gradients with the mean return of a group as baseline: GRPO, RLOO, REINFORCE."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.type_aliases import GymEnv
from stable_baselines3.common.vec_env import VecEnv
from torch import Tensor

from agents.buffers.sequences import SequenceBuffer
from agents.online.base import SequenceAlgorithm
from agents.online.losses import k3
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

    `reference_kl` is the weight of the divergence (estimator k3) in the loss.

    Args:
        policy: as of `SequenceAlgorithm`; its value head is left alone.
        env: the number of dialogues must be a multiple of `group_size`.
        n_epochs: passes over a rollout.
        group_size: dialogues of a group; None makes all of them one group, each begun by itself.
        baseline: "mean" of the group, or of the group's other members ("leave-one-out").
        scale: divide advantages by the deviation of the group's returns.
        kwargs: further arguments of `SequenceAlgorithm`; what goes on beyond `n_steps` tokens
            counts as it stands.

    Raises:
        ValueError: a number or name that cannot be, or as of `SequenceAlgorithm`.
    """

    def __init__(
        self,
        policy: str | type[ActorCriticPolicy],
        env: GymEnv | str,
        n_epochs: int = 1,
        group_size: int | None = 8,
        baseline: str = "mean",
        scale: bool = True,
        **kwargs: Any,
    ) -> None:
        one_of("baseline", baseline, BASELINES, "GRPO")
        self.group_size = group_size
        self.baseline = baseline
        self.scale = scale
        super().__init__(policy, env, n_epochs=n_epochs, **kwargs)

    def _setup_model(self) -> None:
        super()._setup_model()
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
        if self.reference:
            self._steer()
        super().train()

    def _loss(
        self, columns: dict[str, Tensor], values: Tensor, log_prob: Tensor, entropy: Tensor
    ) -> tuple[Tensor, dict[str, Tensor]]:
        policy, figures = self._surrogate(columns, log_prob)
        loss = policy - self._entropy_weight * entropy
        distance = torch.zeros_like(policy)
        if self.reference:
            distance = k3(columns["reference"] - log_prob)
            loss = loss + self.kl_control.coefficient * distance
        return loss, {**figures, "entropy": entropy, "reference_kl": distance}


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
