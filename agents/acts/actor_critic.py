"""Base of A2C, ENAC, ACER and TRACER: play, remember whole dialogues, update from some of them.

In shape it is one of Stable-Baselines3's off-policy algorithms, whose loop and replay buffer it
has; the buffer keeps masks and the probabilities of the behaviour, and gives dialogues whole. An
algorithm is what it does with a batch of them (`update`).
"""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.type_aliases import GymEnv, Schedule
from torch import Tensor

from agents.acts.base import ExplorationOptions, ReplayLearner, ReplayOptions
from agents.acts.trust_region import TrustRegion
from agents.argument_checks import COUNT, require
from agents.buffers.dialogues import ActionChoice, DialogueMemory, DialogueSample
from agents.learner import RunOptions
from agents.models.act_masks import allowed
from agents.policies.belief import BeliefPolicy
from agents.returns import bootstrap_values
from agents.updater import check_rewards


class ActorCriticOptions(ReplayOptions, ExplorationOptions, total=False):
    """Arguments that all actor-critics hand on; those of `ActorCritic` that none changes."""

    reward_scale: float
    ent_coef: float
    vf_coef: float


class DialogueOptions(ActorCriticOptions, total=False):
    """All arguments of `ActorCritic`."""

    learning_starts: int
    batch_size: int | None
    dialogues_per_update: int


class ActorCritic(ReplayLearner, OffPolicyAlgorithm):  # type: ignore[misc]
    """Base of actor-critics over whole dialogues.

    Acts are drawn from (1 - eps) pi + eps uniform, over those that the env allows.

    Args:
        policy: "MlpPolicy" or a subclass of `agents.BeliefPolicy`.
        env: any env or VecEnv of beliefs `Box(B,)` and acts `Discrete(A)`, of any number of rows;
            `action_masks` of it are heeded.
        learning_rate: a number or a schedule.
        buffer_size: decisions that the memory keeps.
        learning_starts: timesteps before the first update.
        batch_size: dialogues of an update, drawn from memory; None takes those that have ended
            since the last one, once.
        dialogues_per_update: how many have to end from one update to the next.
        gradient_steps: steps of an update, each on a batch of its own.
        gamma: discount from one decision to the next.
        reward_scale: what rewards are multiplied by.
        ent_coef, vf_coef: weights of the entropy, and of the loss of the values.
        max_grad_norm: largest norm of a gradient.
        exploration_initial_eps, exploration_final_eps, exploration_fraction: eps at first and at
            last, and the share of training over which it falls from one to the other.
        run: further arguments of all learners, see `agents.learner`.

    Raises:
        ValueError: a number that cannot be, another policy, or other spaces.
    """

    learns_by_sampling = True

    policy: BeliefPolicy
    replay_buffer: DialogueMemory  # type: ignore[assignment]
    trust_region: TrustRegion | None = None

    def __init__(
        self,
        policy: str | type[BasePolicy],
        env: GymEnv | str,
        learning_rate: float | Schedule = 1e-3,
        buffer_size: int = 6000,
        learning_starts: int = 200,
        batch_size: int | None = 32,
        dialogues_per_update: int = 2,
        gradient_steps: int = 1,
        gamma: float = 0.99,
        reward_scale: float = 1.0,
        ent_coef: float = 0.01,
        vf_coef: float = 0.5,
        max_grad_norm: float = 10.0,
        exploration_initial_eps: float = 0.05,
        exploration_final_eps: float = 0.05,
        exploration_fraction: float = 1.0,
        _init_setup_model: bool = True,
        **run: Unpack[RunOptions],
    ) -> None:
        require(type(self).__name__, COUNT, gradient_steps=gradient_steps)
        if batch_size is None and gradient_steps > 1:
            raise ValueError(
                f"{type(self).__name__}: batch_size None takes each dialogue once, in one of "
                f"gradient_steps, got {gradient_steps}; give a number to draw from memory"
            )
        self.dialogues_per_update = dialogues_per_update
        self.reward_scale, self.max_grad_norm = reward_scale, max_grad_norm
        self.ent_coef, self.vf_coef = ent_coef, vf_coef
        self.exploration_initial_eps = exploration_initial_eps
        self.exploration_final_eps = exploration_final_eps
        self.exploration_fraction = exploration_fraction
        self._n_updates = 0
        super().__init__(
            policy,  # type: ignore[arg-type]
            env,
            learning_rate,
            buffer_size=buffer_size,
            learning_starts=learning_starts,
            batch_size=batch_size,  # type: ignore[arg-type]
            gamma=gamma,
            gradient_steps=gradient_steps,
            replay_buffer_class=DialogueMemory,
            support_multi_env=True,
            sde_support=False,
            supported_action_spaces=(spaces.Discrete,),
            **run,  # type: ignore[misc]
        )
        if _init_setup_model:
            self._setup_model()

    # Rollout

    @property
    def exploration_rate(self) -> float:
        """Eps, of now."""
        share = (1 - self._current_progress_remaining) / max(self.exploration_fraction, 1e-8)
        first, last = self.exploration_initial_eps, self.exploration_final_eps
        return first + (last - first) * min(share, 1.0)

    @torch.no_grad()
    def _sample_action(  # type: ignore[override]
        self, learning_starts: int, action_noise: Any = None, n_envs: int = 1
    ) -> tuple[np.ndarray, ActionChoice]:
        """Acts (n_envs,), and how they were chosen."""
        assert self.env is not None
        masks = allowed(self.env)
        beliefs, _ = self.policy.obs_to_tensor(self._last_obs)  # type: ignore[arg-type]
        within = torch.as_tensor(masks, device=self.device)
        logits, _ = self.policy.logits_and_values(beliefs, within)  # type: ignore[arg-type]
        uniform = within / within.sum(-1, keepdim=True)
        probs = torch.lerp(logits.softmax(-1), uniform, self.exploration_rate)
        actions = torch.multinomial(probs, 1)[:, 0].cpu().numpy()
        return actions, ActionChoice(actions, masks, probs.cpu().numpy(), self._last_episode_starts)  # type: ignore[arg-type]

    def _store_transition(
        self,
        replay_buffer: Any,
        buffer_action: Any,
        new_obs: Any,
        reward: np.ndarray,
        dones: np.ndarray,
        infos: list[dict[str, Any]],
    ) -> None:
        """Raises FloatingPointError for rewards that are not finite, before they are kept."""
        check_rewards(reward, self._where)
        super()._store_transition(replay_buffer, buffer_action, new_obs, reward, dones, infos)
        self._last_episode_starts = dones

    # Update

    def train(self, gradient_steps: int, batch_size: int | None) -> None:  # type: ignore[override]
        """Update, where enough dialogues have ended since the last time."""
        memory = self.replay_buffer
        if memory.n_unseen < self.dialogues_per_update:
            return
        self.policy.set_training_mode(True)
        self._update_learning_rate(self.policy.optimizer)
        if self.trust_region and self._n_updates == 0:  # it may have been given other weights
            self.trust_region.begin(self.policy)
        for _ in range(gradient_steps):
            env = self._vec_normalize_env
            batch = memory.new(env) if batch_size is None else memory.draw(batch_size, env)
            metrics = self.update(batch._replace(rewards=batch.rewards * self.reward_scale))
            if self.trust_region:
                self.trust_region.follow(self.policy)
            for name, value in metrics.items():
                self.logger.record_mean(f"train/{name}", float(value.detach()))
            self._n_updates += 1
        memory.mark_seen()
        self.logger.record("train/exploration_rate", self.exploration_rate)
        self.logger.record("train/n_updates", self._n_updates, exclude="tensorboard")

    def update(self, batch: DialogueSample) -> dict[str, Tensor]:
        """One step on a batch of dialogues; figures for the log."""
        raise NotImplementedError

    def step_towards(
        self,
        batch: DialogueSample,
        logits: Tensor,
        entropy: Tensor,
        gain: Tensor,
        value_loss: Tensor,
    ) -> dict[str, Tensor]:
        """Raise gain and entropy (N,), by logits (N, A), and lower the loss of the values."""
        policy_loss = self.policy_loss(batch, logits, gain + self.ent_coef * entropy)
        loss = policy_loss + self.vf_coef * value_loss
        self.descend(self.policy.optimizer, loss)
        return {
            "loss": loss,
            "value_loss": value_loss,
            "entropy": entropy.mean(),
            "policy_gradient_loss": -gain.mean(),
        }

    @torch.no_grad()
    def values_after(self, batch: DialogueSample) -> Tensor:
        """Bootstrap values (N,): V of the next state where a dialogue was truncated; else 0."""
        values = self.policy.predict_values(batch.after[batch.cut])
        return bootstrap_values(batch.cut, values[:, 0])

    def policy_loss(self, batch: DialogueSample, logits: Tensor, gain: Tensor) -> Tensor:
        """Loss of the policy that raises `gain` (N,), a function of logits (N, A)."""
        return self.trust_region.loss(batch, logits, gain) if self.trust_region else -gain.mean()

    # Stable-Baselines3

    def _get_torch_save_params(self) -> tuple[list[str], list[str]]:
        region = ["trust_region"] if self.trust_region else []
        return ["policy", "policy.optimizer", *region], []
