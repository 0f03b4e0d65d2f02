"""GDPL, guided dialog policy learning: PPO on rewards that are estimated from an expert.

A policy plays; a reward estimator f(s, a, s') learns to give the expert's turns more than the
policy's; PPO (sb3-contrib's MaskablePPO, unchanged) then learns from what f gives. The rewards of
the env are logged and not learned from. Source: Takanobu, Zhu and Huang (2019), arXiv 1908.10719.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self, Unpack

import numpy as np
import torch
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from stable_baselines3.common.buffers import RolloutBuffer
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.type_aliases import Schedule
from torch import Tensor, nn
from torch.nn.functional import logsigmoid

from agents.acts.base import ActLearner, RolloutOptions, minibatches, normalize
from agents.argument_checks import COUNT, POSITIVE, require
from agents.buffers.stored_acts import stored_acts
from agents.storage.models import trained_in
from agents.updater import check_tensor
from dialgym.errors import one_of, settings_as

VARIANTS = ("turns", "session", "discriminator")


@dataclass(frozen=True)
class Estimation:
    """Settings of the estimated rewards.

    Attributes:
        variant: "turns" is GDPL itself. "session" (GDPL-sess) gives the sum of a dialogue's rewards
            at its end. "discriminator" (GDPL-discr) learns f as AIRL does, by telling the expert's
            turns from the policy's, D = e^f / (e^f + pi(a | s)).
        hidden: units of the networks g and h.
        learning_rate: of the estimator.
        weight_clip: weights are kept within this of 0 after each step; None for no limit.
        batch_size: turns of each party to a comparison in one gradient step.
        passes: over a rollout, in one update of the estimator.
        log_prob_weight: w of the reward f - w log pi(a | s).
        anneal: timesteps over which w rises from 0; 0 has it whole at once.
        normalize: rewards of a rollout are given mean 0 and deviation 1. f is learned up to a
            constant, which would pay for long dialogues, or for short ones.

    Raises:
        ValueError: a number or name that cannot be.
    """

    variant: str = "turns"
    hidden: int = 50
    learning_rate: float = 1e-3
    weight_clip: float | None = None
    batch_size: int = 256
    passes: int = 1
    log_prob_weight: float = 1.0
    anneal: int = 0
    normalize: bool = True

    def __post_init__(self) -> None:
        one_of("variant", self.variant, VARIANTS, "estimation")
        counts = {"hidden": self.hidden, "batch_size": self.batch_size, "passes": self.passes}
        require("estimation", COUNT, **counts)
        require("estimation", POSITIVE, weight_clip=self.weight_clip)


class RewardEstimator(nn.Module):
    """f(s, a, s') = g(s, a) + gamma h(s') - h(s), with h = 0 after the end (Fu et al. 2018).

    Args:
        beliefs: B, numbers of a belief.
        acts: A.
        hidden: units of g and of h.
        gamma: discount.
    """

    def __init__(self, beliefs: int, acts: int, hidden: int, gamma: float) -> None:
        super().__init__()
        self.gamma = gamma
        self.g = nn.Sequential(nn.Linear(beliefs + acts, hidden), nn.ReLU(), nn.Linear(hidden, 1))
        self.h = nn.Sequential(nn.Linear(beliefs, hidden), nn.ReLU(), nn.Linear(hidden, 1))

    def forward(self, turns: TurnTransitions) -> Tensor:
        """(n,) for n turns."""
        own = self.g(torch.cat([turns.seen, turns.actions], -1))[:, 0]
        after = self.h(turns.seen_after)[:, 0] * ~turns.terminated
        return own + self.gamma * after - self.h(turns.seen)[:, 0]


class TurnTransitions(NamedTuple):
    """n turns of a party."""

    seen: Tensor  # (n, B) float32
    actions: Tensor  # (n, A) float32, of 0 and 1
    seen_after: Tensor  # (n, B) float32
    terminated: Tensor  # (n,) bool

    def select(self, rows: Tensor) -> TurnTransitions:
        """The turns at `rows`."""
        return TurnTransitions(*(column[rows] for column in self))


def entropy_loss(expert: Tensor, sampled: Tensor) -> Tensor:
    """-(mean f of the expert's turns - mean f of the policy's): maximum-entropy IRL, eq. 5."""
    return sampled.mean() - expert.mean()


def discriminator_loss(
    expert: Tensor, sampled: Tensor, expert_log_prob: Tensor, sampled_log_prob: Tensor
) -> Tensor:
    """Cross-entropy of D = e^f / (e^f + pi), whose logit is f - log pi (Fu et al. 2018, eq. 3)."""
    return (
        -logsigmoid(expert - expert_log_prob).mean() - logsigmoid(sampled_log_prob - sampled).mean()
    )


class MaskableOptions(RolloutOptions, total=False):
    """Arguments of `sb3_contrib.MaskablePPO`."""

    n_steps: int
    gae_lambda: float
    clip_range: float | Schedule
    clip_range_vf: float | Schedule | None
    target_kl: float | None
    rollout_buffer_class: type[RolloutBuffer] | None
    rollout_buffer_kwargs: dict[str, Any] | None


class GDPL(ActLearner, MaskablePPO):  # type: ignore[misc]
    """Guided dialog policy learning; see the module.

    Two things are as in the paper and not as in its code, in which the parameters to be clipped are
    an iterator that the optimizer has used up, so that none is, and in which h is read after the
    end of a dialogue too.

    Args:
        policy: "MlpPolicy", which is `agents.BeliefPolicy`, or another one that takes masks.
        env: any env or VecEnv of beliefs and acts.
        dataset: the expert's dialogues: a `Dataset`, `ActData`, or a path; None only to load and
            play.
        estimation: how rewards are estimated, an `Estimation` or a mapping of its fields.
        value_learning_rate: of the critic, a number or a schedule; None takes `learning_rate`.
        kwargs: further arguments of `sb3_contrib.MaskablePPO`.

    Raises:
        ValueError: a number or name that cannot be, or dialogues that do not belong to the env.
    """

    policy_kinds: ClassVar[tuple[type, ...]] = (MaskableActorCriticPolicy,)

    def __init__(
        self,
        policy: str | type[BasePolicy],
        env: Any,
        *,
        dataset: Any = None,
        estimation: Estimation | Mapping[str, Any] | None = None,
        value_learning_rate: float | Schedule | None = None,
        **kwargs: Unpack[MaskableOptions],
    ) -> None:
        self.dataset, self.estimation = dataset, settings_as(Estimation, "estimation", estimation)
        self.value_learning_rate = value_learning_rate
        super().__init__(policy, env, **kwargs)  # type: ignore[arg-type]

    def _setup_model(self) -> None:
        super()._setup_model()
        self._separate_values()
        beliefs, acts = self.observation_space, self.action_space
        sizes = int(beliefs.shape[0]), int(acts.n)  # type: ignore[index, attr-defined]
        self.estimator = RewardEstimator(*sizes, self.estimation.hidden, self.gamma).to(self.device)
        self.estimator_optimizer = torch.optim.RMSprop(
            self.estimator.parameters(), self.estimation.learning_rate
        )
        self.expert: Any = None
        if self.dataset is not None:
            place = trained_in(self)
            self.expert = stored_acts(
                self.dataset, (beliefs, acts), self.gamma, place
            ).data.decisions

    # Rollout: what followed each turn is kept

    def learn(self, *args: Any, **kwargs: Any) -> Self:
        """As everywhere in Stable-Baselines3; raises ValueError where there is no expert."""
        if self.expert is None:
            raise ValueError(
                "GDPL: expected the dialogues of an expert, got none; give them to the "
                "constructor, or to load(..., dataset=...)"
            )
        return super().learn(*args, **kwargs)

    def collect_rollouts(self, *args: Any, **kwargs: Any) -> bool:
        """A rollout whose rewards are those of the estimator, which learns from it first."""
        self._ends: list[tuple[int, int, np.ndarray, bool]] = []
        self._step = 0
        if not super().collect_rollouts(*args, **kwargs):
            return False
        turns, cut = self._rollout()
        log_probs = torch.as_tensor(self.rollout_buffer.log_probs, device=self.device).flatten()
        self.update_estimator(turns, log_probs)
        self.use_rewards(self.rewards(turns, log_probs), turns, cut)
        return True

    def _update_info_buffer(self, infos: Any, dones: Any = None) -> None:
        """Called at each step of a rollout: what was seen last of each dialogue is noted."""
        super()._update_info_buffer(infos, dones)
        for row in np.flatnonzero(dones).tolist():
            cut = bool(infos[row].get("TimeLimit.truncated", False))
            self._ends.append((self._step, row, infos[row]["terminal_observation"], cut))
        self._step += 1

    def _rollout(self) -> tuple[TurnTransitions, Tensor]:
        """The turns (T * N) of the rollout, and after which of them a limit cut the dialogue."""
        buffer = self.rollout_buffer
        after = np.concatenate([buffer.observations[1:], np.asarray(self._last_obs)[None]])
        terminated, cut = np.zeros((2, *after.shape[:2]), bool)
        for step, row, last, was_cut in self._ends:
            after[step, row], terminated[step, row], cut[step, row] = last, not was_cut, was_cut
        found = self._turns(buffer.observations, buffer.actions, after, terminated)
        return found, torch.as_tensor(cut.reshape(-1), device=self.device)

    def _turns(self, seen: Any, actions: Any, after: Any, terminated: Any) -> TurnTransitions:
        """Turns of arrays (..., B), (..., A) or (..., 1), (..., B) and (...,)."""
        size, count = seen.shape[-1], int(self.action_space.n)  # type: ignore[attr-defined]
        chosen = torch.as_tensor(np.asarray(actions, np.float32), device=self.device)
        if not self.action_space.shape:  # one act: one-hot
            chosen = nn.functional.one_hot(chosen.long().flatten(), count).float()
        arrays = (np.asarray(a, np.float32).reshape(-1, size) for a in (seen, after))
        beliefs, next_beliefs = (torch.as_tensor(a, device=self.device) for a in arrays)
        over = torch.as_tensor(np.asarray(terminated, bool).reshape(-1), device=self.device)
        return TurnTransitions(beliefs, chosen.reshape(-1, count), next_beliefs, over)

    def train(self) -> None:
        """Move the policy, as in sb3-contrib, with gradients that are checked.

        Raises:
            FloatingPointError: a gradient is not finite; the step that it was for is not taken.
        """
        hook = self.policy.optimizer.register_step_pre_hook(self._check_gradient)
        try:
            super().train()
        finally:
            hook.remove()

    def _check_gradient(self, optimizer: Any, *_: Any) -> None:
        for group in optimizer.param_groups:
            for weight in group["params"]:
                if weight.grad is not None:
                    check_tensor("gradient", weight.grad, self._where)

    # The estimator

    def update_estimator(self, turns: TurnTransitions, log_probs: Tensor) -> None:
        """Gradient steps in which some turns (n,) are compared with as many of the expert's."""
        size = min(self.estimation.batch_size, len(log_probs))
        passes = (minibatches(len(log_probs), size) for _ in range(self.estimation.passes))
        for rows in (rows for each in passes for rows in each if len(rows) == size):
            drawn = torch.randint(len(self.expert.rewards), (size,)).numpy()
            loss, gap = self.estimator_loss(drawn, turns.select(rows), log_probs[rows])
            self.descend(self.estimator_optimizer, loss, max_norm=math.inf)
            clip_weights(self.estimator, self.estimation.weight_clip)
            self.logger.record_mean("train/estimator_loss", float(loss.detach()))
            self.logger.record_mean("train/estimated_gap", float(gap))

    def estimator_loss(
        self, drawn: np.ndarray, sampled: TurnTransitions, log_probs: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The loss over the expert's decisions `drawn` and turns sampled, and the gap in f."""
        data, seen = self.expert, self._as_seen
        expert = self._turns(
            seen(data.observations[drawn]),
            data.actions[drawn],
            seen(data.next_observations[drawn]),
            data.terminated[drawn],
        )
        theirs, ours = self.estimator(expert), self.estimator(sampled)
        gap = (theirs.mean() - ours.mean()).detach()
        if self.estimation.variant != "discriminator":
            return entropy_loss(theirs, ours), gap
        with torch.no_grad():
            actions = torch.as_tensor(data.actions[drawn], device=self.device)
            allowed = torch.as_tensor(data.action_masks[drawn], device=self.device)
            allowed = allowed | expert.actions.bool()  # an expert may know no rules
            _, expert_log_prob, _ = self.policy.evaluate_actions(expert.seen, actions, allowed)
        return discriminator_loss(theirs, ours, expert_log_prob, log_probs), gap

    def _as_seen(self, beliefs: np.ndarray) -> np.ndarray:
        """Stored beliefs (n, B) as the policy sees those of the env, normalised where they are."""
        env = self.get_vec_normalize_env()
        found: Any = beliefs if env is None else env.normalize_obs(beliefs)
        return np.asarray(found, np.float32)

    @torch.no_grad()
    def rewards(self, turns: TurnTransitions, log_probs: Tensor) -> np.ndarray:
        """(T, N): f - w log pi of the rollout's turns, as the settings have it."""
        settings, shape = self.estimation, self.rollout_buffer.rewards.shape
        share = min(self.num_timesteps / settings.anneal, 1.0) if settings.anneal else 1.0
        found = self.estimator(turns) - share * settings.log_prob_weight * log_probs
        check_tensor("estimated reward", found, self._where)
        if settings.normalize:
            found = normalize(found)
        self.logger.record("train/estimated_reward", float(found.mean()))
        rewards = found.cpu().numpy().reshape(shape)
        if settings.variant != "session":
            return rewards
        ends = np.zeros(shape, bool)
        for step, row, *_ in self._ends:
            ends[step, row] = True
        return at_the_end(rewards, ends)

    def use_rewards(self, rewards: np.ndarray, turns: TurnTransitions, cut: Tensor) -> None:
        """Put rewards (T, N) into the buffer, and compute advantages and returns again."""
        buffer = self.rollout_buffer
        with torch.no_grad():
            following = self.policy.predict_values(turns.seen_after)[:, 0] * cut  # bootstrap
            last, _ = self.policy.obs_to_tensor(self._last_obs)  # type: ignore[arg-type]
            last_values = self.policy.predict_values(last)
        buffer.rewards = rewards + self.gamma * following.cpu().numpy().reshape(rewards.shape)
        buffer.compute_returns_and_advantage(last_values, np.asarray(self._last_episode_starts))

    # Stable-Baselines3

    def _excluded_save_params(self) -> list[str]:
        own = ["dataset", "expert", "_ends", "_step"]
        return [*super()._excluded_save_params(), *own]

    def _get_torch_save_params(self) -> tuple[list[str], list[str]]:
        modules, tensors = super()._get_torch_save_params()
        return [*modules, "estimator", "estimator_optimizer"], tensors


def clip_weights(module: nn.Module, limit: float | None) -> None:
    """Keep all weights within `limit` of 0; None changes nothing."""
    if limit is not None:
        with torch.no_grad():
            for weight in module.parameters():
                weight.clamp_(-limit, limit)


def at_the_end(rewards: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Rewards (T, N) with the sum of each dialogue at its end; (T, N) bool says where that is.

    What dialogues have got that go on after the rollout is put at its last step.
    """
    found = np.zeros_like(rewards)
    so_far = np.zeros_like(rewards[0])
    for step, ended in enumerate(ends):
        so_far = so_far + rewards[step]
        found[step] = np.where(ended, so_far, 0)
        so_far = np.where(ended, 0, so_far)
    found[-1] += so_far
    return found
