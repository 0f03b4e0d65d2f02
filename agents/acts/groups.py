"""Rollouts of dialogues by acts, those of a group begun alike: GRPO and expert iteration."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any, NamedTuple, Unpack

import numpy as np
import torch
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.type_aliases import GymEnv, Schedule
from stable_baselines3.common.utils import FloatSchedule
from stable_baselines3.common.vec_env import VecEnv
from torch import Tensor

from agents.acts.base import ActAlgorithm, Held
from agents.argument_checks import Bounds, require
from agents.learner import LearnerOptions
from agents.online.credit import BASELINES, SCALES, Credit, all_equal, credited
from agents.online.expert_iteration import best_of_groups
from agents.online.groups import reset_alike
from agents.online.reference import KLControl, k3
from agents.online.surrogates import LOSS_TYPES, mean_weights, surrogate
from agents.policies.init_from import start_from
from dialgym.errors import one_of

CREDITS = {"episode": None, "turn": None, "anchor": "anchor", "exact": "value"}
"""Credits of acts, and the entry of infos that each needs."""


class UpdateOptions(LearnerOptions, total=False):
    """Arguments of an update over acts without values."""

    batch_size: int | None
    n_epochs: int
    ent_coef: float


class ActGroupOptions(UpdateOptions, total=False):
    """Arguments of `ActGroupAlgorithm`."""

    group_size: int | None
    kl: KLControl | Mapping[str, Any] | None


class GroupRollout(NamedTuple):
    """N decisions of a rollout, step by step."""

    observations: Tensor  # (N, B) float32
    actions: Tensor  # (N,) int64, or (N, A) float32 of 0 and 1
    masks: Tensor  # (N, A) or (N, 2 A) bool, as sb3-contrib has them
    log_probs: Tensor  # (N,) float32, of the policy that chose
    advantages: Tensor  # (N,) float32
    weights: Tensor  # (N,) float32, in the mean of losses
    reference_log_probs: Tensor | None  # (N,) float32; None without a reference

    def select(self, rows: Tensor) -> GroupRollout:
        """The decisions at `rows`."""
        return GroupRollout(*(None if column is None else column[rows] for column in self))  # type: ignore[arg-type]


class ActGroupAlgorithm(ActAlgorithm):
    """Holds a dialogue in each row of the env, and compares those of a group.

    Dialogues of a group begin alike: their env is reset with the same seed. A subclass gives the
    decisions that are learned from their advantages and weights (`_credit`), and the
    `policy_loss`. The policy's critic is left alone.

    Args:
        policy: `agents.BeliefPolicy`, or "MlpPolicy".
        env: of beliefs and acts; the number of its rows must be a multiple of `group_size`.
        group_size: dialogues of a group; None makes all of them one group, each begun by itself.
        kl: what divergence from a reference costs, a `KLControl` or a mapping of its fields: the
            coefficient weighs estimator k3 in the loss. The reference is the policy that learning
            first begins with, or a saved one of the same shape; it has the policy's dtype.
        kwargs: further arguments of `ActAlgorithm`.

    Raises:
        ValueError: a number that cannot be, or as of `ActAlgorithm`.
    """

    def __init__(
        self,
        policy: str | type[BasePolicy],
        env: GymEnv | str,
        group_size: int | None = 8,
        kl: KLControl | Mapping[str, Any] | None = None,
        **kwargs: Unpack[UpdateOptions],
    ) -> None:
        self.group_size, self.kl = group_size, KLControl.of(kl)
        self.kl_coef = self.kl.coef
        if self.kl.dtype != "float32" or self.kl.offload:
            raise ValueError(
                f"{type(self).__name__}: dtype and offload of kl are for language models, got "
                f"{self.kl.dtype!r} and {self.kl.offload}; leave them out"
            )
        super().__init__(policy, env, gamma=1.0, vf_coef=0.0, normalize_advantage=False, **kwargs)  # type: ignore[misc]

    def _setup_model(self) -> None:
        super()._setup_model()
        size = self.group_size
        # The log's mean is over all dialogues of a rollout: the last to end are the longest ones.
        self._stats_window_size = max(self._stats_window_size, self.n_envs)
        if size is not None and (size < 2 or (self.env is not None and self.n_envs % size)):
            raise ValueError(
                f"{type(self).__name__}: group_size must be at least 2 and divide the number of "
                f"dialogues, got {size} and {self.n_envs}; None makes all of them one group"
            )
        self.rng = getattr(self, "rng", None) or np.random.default_rng(self.seed)
        self.reference = deepcopy(self.policy).requires_grad_(False) if self.kl.coef else None

    def _setup_learn(self, *args: Any, **kwargs: Any) -> Any:
        result = super()._setup_learn(*args, **kwargs)
        if self.reference is not None and not getattr(self, "reference_is_set", False):
            start_from(self.reference, self.kl.reference or self.policy)
            self.reference_is_set = True
        return result

    # The rollout

    def collect(self, env: VecEnv, callback: BaseCallback) -> bool:
        """A dialogue in each row."""
        held = self.hold(env, callback, self._begin(env))
        if held is None:
            return False
        advantages, weights = self._credit(held)
        seen, actions, masks, log_probs = (part.to(self.device) for part in held.decisions())
        near = None
        if self.reference is not None:
            with torch.no_grad():
                near = self.reference.evaluate_actions(seen, actions, masks)[1]
        parts = (torch.as_tensor(part[held.played]) for part in (advantages, weights))
        gains, shares = (part.float().to(self.device) for part in parts)
        rollout = GroupRollout(seen, actions, masks, log_probs, gains, shares, near)
        self.rollout = rollout.select(shares.nonzero()[:, 0])
        self._steer(rollout)
        return True

    def _begin(self, env: VecEnv) -> Any:
        """Reset all dialogues, those of a group with the same seed; what is observed."""
        seen = reset_alike(env, self.rng, self.group_size)
        self._begun(env.unwrapped.reset_infos)
        return seen

    def _begun(self, infos: list[dict[str, Any]]) -> None:
        """Read the infos of dialogues that have just begun; here nothing."""

    @property
    def _groups(self) -> np.ndarray:
        """(n_envs,) the number of each dialogue's group."""
        return np.arange(self.n_envs) // (self.group_size or self.n_envs)

    def _credit(self, held: Held) -> tuple[np.ndarray, np.ndarray]:
        """Advantages and weights (T, n) of all steps; decisions of weight 0 are not learned."""
        raise NotImplementedError

    def _steer(self, rollout: GroupRollout) -> None:
        """Log the divergence of the rollout and its coefficient, and steer that."""
        if rollout.reference_log_probs is None:
            return
        mean = float((rollout.log_probs - rollout.reference_log_probs).mean())
        self.logger.record("reference/kl", mean)
        self.logger.record("reference/kl_coef", self.kl_coef)
        self.next_kl_coef = self.kl.steered(self.kl_coef, mean, len(rollout.log_probs))

    # The update

    def train(self) -> None:
        """Pass over the rollout, by the coefficient that it was played with."""
        super().train()
        if self.reference is not None:
            self.kl_coef = self.next_kl_coef

    def loss(self, batch: GroupRollout) -> tuple[Tensor, dict[str, Tensor]]:
        """Mean of weight * (`policy_loss` + kl_coef * k3), less ent_coef * the mean entropy."""
        _, log_prob, entropy = self.policy.evaluate_actions(
            batch.observations, batch.actions, batch.masks
        )
        assert entropy is not None
        losses, metrics = self.policy_loss(batch, log_prob)
        if batch.reference_log_probs is not None:
            metrics["reference_kl"] = k3(batch.reference_log_probs - log_prob)
            losses = losses + self.kl_coef * metrics["reference_kl"]
        loss = (losses * batch.weights).mean() - self.ent_coef * entropy.mean()
        return loss, {name: part.mean() for name, part in {**metrics, "entropy": entropy}.items()}

    def policy_loss(
        self, batch: GroupRollout, log_prob: Tensor
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Losses (N,) of decisions without divergence and entropy, and metrics (N,).

        Args:
            batch: N decisions.
            log_prob: (N,) of their actions now.
        """
        raise NotImplementedError

    # Saving

    def _excluded_save_params(self) -> list[str]:
        return [*super()._excluded_save_params(), "reference"]

    def _get_torch_save_params(self) -> tuple[list[str], list[str]]:
        modules, tensors = super()._get_torch_save_params()
        return [*modules, *(["reference"] if self.reference is not None else [])], tensors


class ActGRPO(ActGroupAlgorithm):
    """`agents.GRPO` of dialogue acts: a decision is an act, or all acts of a turn at once.

    The same baselines, losses and credits, by the same functions: an act is a turn. What asks for
    tokens is not there: ratios of sequences, the credits "prefix" and "privileged", `truth_gain`,
    `resample`.

    Args:
        policy, env: as of `ActGroupAlgorithm`.
        loss_type: as of `GRPO`; the greatest length of "dr_grpo" is that of the rollout.
        clip_range: how far below 1 a ratio may count; a number or a schedule.
        epsilon_high: how far above 1; None takes `clip_range`. For "cispo" the greatest weight of a
            ratio, by default 5.
        baseline, scale_rewards: as of `GRPO`.
        credit: "episode", "turn", "anchor" or "exact", as of `GRPO`.
        anchor_weight: of the second term of the credit "anchor".
        gamma: the discount from one turn to the next, with the credits "turn" and "anchor".
        kwargs: further arguments of `ActGroupAlgorithm`.

    Raises:
        ValueError: a number or name that cannot be, or as of `ActGroupAlgorithm`.
    """

    def __init__(
        self,
        policy: str | type[BasePolicy],
        env: GymEnv | str,
        loss_type: str = "dapo",
        clip_range: float | Schedule = 0.2,
        epsilon_high: float | None = None,
        baseline: str = "mean",
        scale_rewards: str | bool = "group",
        credit: str = "episode",
        anchor_weight: float = 1.0,
        gamma: float = 1.0,
        **kwargs: Unpack[ActGroupOptions],
    ) -> None:
        scale = scale_rewards
        if isinstance(scale, bool):
            scale = "group" if scale else "none"
        one_of("loss_type", loss_type, LOSS_TYPES, "ActGRPO")
        one_of("baseline", baseline, BASELINES, "ActGRPO")
        one_of("scale_rewards", scale, SCALES, "ActGRPO")
        one_of("credit", credit, CREDITS, "ActGRPO")
        if credit == "exact" and gamma != 1:
            raise ValueError(
                f"ActGRPO: credit='exact' is of undiscounted values, got gamma={gamma}; leave "
                'gamma at 1, or take credit="turn"'
            )
        self.loss_type, self.epsilon_high = loss_type, epsilon_high
        self.clip_range = FloatSchedule(clip_range)
        self.baseline, self.scale_rewards, self.credit = baseline, scale, credit
        self.anchor_weight = anchor_weight
        super().__init__(policy, env, **kwargs)
        self.gamma = gamma

    def _setup_model(self) -> None:
        super()._setup_model()
        wrapped = self._vec_normalize_env
        if self.credit == "exact" and wrapped is not None and wrapped.norm_reward:
            raise ValueError(
                "ActGRPO: credit='exact' adds rewards to values in their own unit, got an env that "
                "scales rewards; give VecNormalize norm_reward=False"
            )

    def _begun(self, infos: list[dict[str, Any]]) -> None:
        key = CREDITS[self.credit]
        if key and not all(key in info and info[key] != "" for info in infos):
            raise ValueError(
                f'ActGRPO: credit="{self.credit}" needs infos with `{key}`, got '
                f"{sorted(infos[0])}; make the env with {key}s=True"
            )
        self._first_infos = infos

    def _credit(self, held: Held) -> tuple[np.ndarray, np.ndarray]:
        how = self.credit, self.baseline, self.scale_rewards, self.gamma, self.anchor_weight
        known = self._known(held)
        advantages = credited(
            Credit(*how), held.rewards, held.played, held.played, self._groups, known
        )
        sizes = held.played.sum(0)
        decisions = float(sizes.sum())
        totals = decisions, float(len(sizes)), decisions
        weights = mean_weights(self.loss_type, sizes, totals, len(held.played))
        return advantages, np.broadcast_to(weights, held.played.shape)

    def _known(self, held: Held) -> np.ndarray | None:
        """(T, n): names or values of the situations in which acts were chosen, if asked for."""
        key = CREDITS[self.credit]
        if key is None:
            return None
        known = np.zeros(held.played.shape, np.uint64 if key == "anchor" else float)
        for step, infos in enumerate([self._first_infos, *held.infos[:-1]]):
            known[step] = known[step - 1] if step else 0
            for row, info in enumerate(infos):
                if key in info:
                    known[step, row] = int(info[key], 16) if key == "anchor" else info[key]
        return known

    def policy_loss(
        self, batch: GroupRollout, log_prob: Tensor
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """The surrogate."""
        log_ratio = log_prob - batch.log_probs
        low = self.clip_range(self._current_progress_remaining)
        return surrogate(batch, log_prob, log_ratio, self.loss_type, low, self.epsilon_high)

    def _excluded_save_params(self) -> list[str]:
        return [*super()._excluded_save_params(), "_first_infos"]


class ActExpertIteration(ActGroupAlgorithm):
    """`agents.ExpertIteration` of dialogue acts: cloning of the policy's own best dialogues.

    Args:
        policy, env: as of `ActGroupAlgorithm`.
        top, equal_groups: as of `ExpertIteration`.
        kwargs: further arguments of `ActGroupAlgorithm`.

    Raises:
        ValueError: `top` is not above 0 and at most 1, or as of `ActGroupAlgorithm`.
    """

    def __init__(
        self,
        policy: str | type[BasePolicy],
        env: GymEnv | str,
        top: float = 0.25,
        equal_groups: bool = True,
        **kwargs: Unpack[ActGroupOptions],
    ) -> None:
        require("ActExpertIteration", Bounds(most=1.0, above=True), top=top)
        self.top, self.equal_groups = top, equal_groups
        super().__init__(policy, env, **kwargs)

    def _credit(self, held: Held) -> tuple[np.ndarray, np.ndarray]:
        returns = held.rewards.sum(0, np.float64)
        kept = best_of_groups(returns, self._groups, self.top)
        if not self.equal_groups:
            differ = ~all_equal(returns, self._groups)
            kept = kept & differ if differ.any() else kept
        self.logger.record("rollout/kept_return", float(returns[kept].mean()))
        chosen = np.broadcast_to(kept, held.played.shape).astype(np.float32)
        return chosen, chosen

    def policy_loss(
        self, batch: GroupRollout, log_prob: Tensor
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """-log pi of what the policy has chosen."""
        return -log_prob, {"approx_kl": k3(log_prob - batch.log_probs).detach()}
