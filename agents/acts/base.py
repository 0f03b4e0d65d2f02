"""Base of the learners over acts, and of those whose rollouts are whole dialogues.

Their arguments are declared once, as typed dictionaries; policies are checked, minibatches drawn
and weights normalised here. The loops are Stable-Baselines3's: on-policy here, off-policy in
`actor_critic` and `dqn`. (The stock algorithms, with rollouts of so many steps, play act views as
they are; see `gdpl`, which is one of them with rewards of its own.)
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, TypedDict, Unpack

import numpy as np
import torch
from gymnasium import spaces
from sb3_contrib.common.maskable.utils import is_masking_supported
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.type_aliases import GymEnv, RolloutReturn, Schedule
from stable_baselines3.common.vec_env import VecEnv
from torch import Tensor

from agents.learner import Learner, LearnerOptions, SetupOptions
from agents.policies.belief import BeliefPolicy
from agents.storage.models import read_model
from agents.updater import check_rewards


class RolloutOptions(LearnerOptions, total=False):
    """Arguments of on-policy learners over acts."""

    batch_size: int | None
    n_epochs: int
    gamma: float
    ent_coef: float
    vf_coef: float
    normalize_advantage: bool


class ReplayOptions(LearnerOptions, total=False):
    """Arguments of off-policy learners over acts, the rates of exploration aside."""

    buffer_size: int
    gradient_steps: int
    gamma: float
    exploration_fraction: float


class ExplorationOptions(TypedDict, total=False):
    """Shares of acts that are drawn at random, at first and at last."""

    exploration_initial_eps: float
    exploration_final_eps: float


class ActLearner(Learner):
    """A learner whose policy chooses acts within masks."""

    policy_aliases: ClassVar[dict[str, type[BasePolicy]]] = {"MlpPolicy": BeliefPolicy}

    def _predicted(self, observation: Any, deterministic: bool, masks: Any) -> np.ndarray:
        acts: np.ndarray = self.policy.predict(observation, None, None, deterministic, masks)[0]
        return acts


class ReplayLearner(ActLearner):
    """An act learner that is one of Stable-Baselines3's off-policy algorithms, too."""

    def collect_rollouts(self, *args: Any, **kwargs: Any) -> RolloutReturn:
        """As of `OffPolicyAlgorithm`.

        A callback that stops it has the env a step ahead of what was kept: a later `learn` begins
        with new dialogues.
        """
        found: RolloutReturn = super().collect_rollouts(*args, **kwargs)  # type: ignore[misc]
        if not found.continue_training:
            self._last_obs = None
        return found


def copied_to(model: Any, env: VecEnv, left_out: Sequence[str], changes: Mapping[str, Any]) -> Any:
    """A copy of a model that acts, and can learn on, in an env of another domain.

    Args:
        model: as `save` writes it.
        env: wrapped as the model wants it.
        left_out: attributes that belong to the env which it was in.
        changes: of other attributes.
    """
    file = io.BytesIO()
    model.save(file, exclude=left_out)
    file.seek(0)
    here = {
        "observation_space": env.observation_space,
        "action_space": env.action_space,
        "num_timesteps": 0,
        "_episode_num": 0,
    }
    return read_model(type(model), file, env, model.device, {**here, **changes})


def minibatches(count: int, size: int | None) -> Iterator[Tensor]:
    """Yield the rows of minibatches, `count` in a new order; None takes them whole."""
    yield from torch.randperm(count).split(size or count)


def normalize(weights: Tensor) -> Tensor:
    """Weights (n,) with mean 0 and deviation 1; a single one stays as it is."""
    if len(weights) < 2:
        return weights
    return (weights - weights.mean()) / (weights.std() + 1e-8)


class DialogueRollouts(ActLearner, OnPolicyAlgorithm):  # type: ignore[misc]
    """Stable-Baselines3's on-policy algorithm with rollouts of whole dialogues, not of steps.

    An algorithm says how a rollout is collected (`collect`), and learns from it (`train`).
    """

    action_spaces: ClassVar[tuple[type[spaces.Space], ...]] = (spaces.Discrete, spaces.MultiBinary)

    def __init__(
        self,
        policy: str | type[BasePolicy],
        env: GymEnv | str,
        learning_rate: float | Schedule,
        gamma: float,
        ent_coef: float = 0.0,
        vf_coef: float = 0.0,
        max_grad_norm: float = 1.0,
        **run: Unpack[SetupOptions],
    ) -> None:
        self._n_updates = 0
        super().__init__(
            policy,  # type: ignore[arg-type]
            env,
            learning_rate=learning_rate,
            n_steps=1,
            gamma=gamma,
            gae_lambda=1.0,
            ent_coef=ent_coef,
            vf_coef=vf_coef,
            max_grad_norm=max_grad_norm,
            use_sde=False,
            sde_sample_freq=-1,
            supported_action_spaces=self.action_spaces,
            **run,
        )

    def _setup_model(self) -> None:
        """Without a buffer of fixed size."""
        self._check_settings()
        self._setup_lr_schedule()
        self.set_random_seed(self.seed)
        self.rollout_buffer = None  # type: ignore[assignment]
        self.policy = self.policy_class(
            self.observation_space, self.action_space, self.lr_schedule, **self.policy_kwargs
        ).to(self.device)
        self._separate_values()

    def collect_rollouts(  # type: ignore[override]
        self, env: VecEnv, callback: BaseCallback, rollout_buffer: Any, n_rollout_steps: int
    ) -> bool:
        """Play whole dialogues; False where a callback wants to stop."""
        self.policy.set_training_mode(False)
        callback.on_rollout_start()
        if not self.collect(env, callback):
            return False
        callback.on_rollout_end()
        return True

    def collect(self, env: VecEnv, callback: BaseCallback) -> bool:
        """Collect a rollout for `train`; False if a callback stops the training."""
        raise NotImplementedError


class ActRollout(NamedTuple):
    """n decisions of a rollout, dialogue by dialogue, each in order."""

    observations: Tensor  # (n, B) float32
    actions: Tensor  # (n,) int64, or (n, A) float32 of 0 and 1
    masks: Tensor  # (n, A) or (n, 2 A) bool, as sb3-contrib has them
    log_probs: Tensor  # (n,) float32, of the policy that chose
    weights: Tensor  # (n,) float32, what an action is worth: its return, or its advantage
    returns: Tensor  # (n,) float32, what values are learned from

    def select(self, rows: Tensor) -> ActRollout:
        """The decisions at `rows`."""
        return ActRollout(*(column[rows] for column in self))


class Held(NamedTuple):
    """A dialogue in each of n rows, of T steps; those that have ended rest."""

    observations: np.ndarray  # (T, n, B) float32
    actions: np.ndarray  # (T, n) int64, or (T, n, A) of 0 and 1
    masks: np.ndarray  # (T, n, A) or (T, n, 2 A) bool
    log_probs: np.ndarray  # (T, n) float32
    values: np.ndarray  # (T, n) float32, of the policy's critic
    rewards: np.ndarray  # (T, n), 0 for rows that rest
    played: np.ndarray  # (T, n) bool
    infos: list[list[dict[str, Any]]]  # T lists of n, after each step; empty for rows that rest

    def decisions(self) -> tuple[Tensor, ...]:
        """Observations, actions, masks and log-probabilities of the N decisions, step by step."""
        return tuple(torch.as_tensor(column[self.played]) for column in self[:4])


class ActAlgorithm(DialogueRollouts):
    """Base of `PG`, `MADPL` and what compares dialogues of a group: a rollout is one of each row.

    Args:
        policy: `agents.BeliefPolicy`, or "MlpPolicy".
        env: any env or VecEnv of beliefs and acts; its number of rows is that of the dialogues of a
            rollout.
        learning_rate: a number or a schedule.
        batch_size: decisions of a minibatch; None takes a rollout whole.
        n_epochs: passes over a rollout.
        gamma: discount from one decision to the next.
        ent_coef, vf_coef: weights of the entropy, and of the loss of the values.
        normalize_advantage: weights of a minibatch are given mean 0 and deviation 1.
        max_grad_norm: largest norm of a gradient.
        run: further arguments of all learners, see `agents.learner`.

    Raises:
        ValueError: a number that cannot be, another policy, or other spaces.
    """

    policy: BeliefPolicy  # type: ignore[assignment]

    def __init__(
        self,
        policy: str | type[BasePolicy],
        env: GymEnv | str,
        learning_rate: float | Schedule = 1e-3,
        batch_size: int | None = 256,
        n_epochs: int = 1,
        gamma: float = 0.99,
        ent_coef: float = 0.0,
        vf_coef: float = 0.5,
        normalize_advantage: bool = True,
        max_grad_norm: float = 10.0,
        **run: Unpack[SetupOptions],
    ) -> None:
        self.batch_size, self.n_epochs = batch_size, n_epochs
        self.normalize_advantage = normalize_advantage
        super().__init__(policy, env, learning_rate, gamma, ent_coef, vf_coef, max_grad_norm, **run)

    def _setup_learn(self, *args: Any, **kwargs: Any) -> Any:
        """As everywhere; raises ValueError for an env without masks."""
        found = super()._setup_learn(*args, **kwargs)
        if not is_masking_supported(self.env):
            raise ValueError(
                f"{type(self).__name__}: expected an env with action_masks, as act views have, got "
                "one without; give it a method action_masks() that says which acts may be chosen"
            )
        return found

    def train(self) -> None:
        """Pass over the rollout `n_epochs` times in minibatches."""
        self.policy.set_training_mode(True)
        self._update_learning_rate(self.policy.optimizer)
        for _ in range(self.n_epochs):
            for rows in minibatches(len(self.rollout.weights), self.batch_size):
                loss, metrics = self.loss(self.rollout.select(rows))
                self.descend(self.policy.optimizer, loss)
                for name, value in {"loss": loss, **metrics}.items():
                    self.logger.record_mean(f"train/{name}", float(value.detach()))
            self._n_updates += 1
        self.logger.record("train/n_updates", self._n_updates, exclude="tensorboard")

    def hold(self, env: VecEnv, callback: BaseCallback, seen: Any) -> Held | None:
        """Hold a dialogue in each row, from the observations `seen` of those that have just begun.

        Rows that have ended go on unheard until all have. None where a callback wants to stop.
        """
        steps: list[tuple[np.ndarray, ...]] = []
        heard: list[list[dict[str, Any]]] = []
        playing = np.ones(env.num_envs, bool)
        while playing.any():
            masks = np.stack(env.env_method("action_masks"))
            actions, values, log_probs = self._choose(seen, masks)
            after, rewards, ended, all_infos = env.step(actions)
            rewards = np.where(playing, rewards, 0)
            check_rewards(rewards, self._where)
            dones = ended & playing
            infos = [info if on else {} for info, on in zip(all_infos, playing)]
            self.num_timesteps += int(playing.sum())
            callback.update_locals(locals())
            if not callback.on_step():
                return None
            self._update_info_buffer(infos, dones)
            rewards = rewards + self._final_values(infos, dones)
            steps.append((seen, actions, masks, log_probs, values, rewards, playing.copy()))
            heard.append(infos)
            playing &= ~dones
            seen = after
        return Held(*(np.stack(column) for column in zip(*steps)), infos=heard)  # type: ignore[arg-type,misc]

    @torch.no_grad()
    def _choose(self, seen: np.ndarray, masks: np.ndarray) -> tuple[np.ndarray, ...]:
        beliefs, _ = self.policy.obs_to_tensor(seen)
        found = self.policy(beliefs, action_masks=masks)
        actions, values, log_probs = (part.cpu().numpy() for part in found)
        return actions, values[:, 0], log_probs

    def _final_values(self, infos: list[dict[str, Any]], dones: np.ndarray) -> np.ndarray | float:
        """Discounted bootstrap values (n_envs,) of dialogues that are done; 0 by default."""
        return 0.0

    rollout: Any
    """N decisions that `train` passes over, with `weights` (N,) and `part(rows)`."""

    def loss(self, batch: Any) -> tuple[Tensor, dict[str, Tensor]]:
        """The loss of a minibatch, and figures for the log."""
        raise NotImplementedError

    def normalized(self, weights: Tensor) -> Tensor:
        """Weights (n,) as losses take them."""
        return normalize(weights) if self.normalize_advantage else weights

    # Stable-Baselines3

    def _excluded_save_params(self) -> list[str]:
        return [*super()._excluded_save_params(), "rollout"]
