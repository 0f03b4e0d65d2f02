"""Proximal policy optimisation over whole dialogues (Schulman et al. 2017).

An update is read in four files: here what a rollout is worth and the loss; `on_policy.py` plays and
runs the epochs; `agents/buffers/sequences.py` makes sequences of steps; `agents/updater.py` takes
the gradient step.
"""

from __future__ import annotations

from typing import Any, Protocol, Unpack

import numpy as np
import torch
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.type_aliases import GymEnv, Schedule
from stable_baselines3.common.utils import FloatSchedule, explained_variance
from stable_baselines3.common.vec_env import VecEnv
from torch import Tensor

from agents.argument_checks import check_bounds
from agents.buffers.sequences import Rollout, SequenceBatch, SequenceBuffer
from agents.models.observations import Observed
from agents.online.on_policy import SequenceAlgorithm, SequenceOptions
from agents.returns import gae, turn_gae
from dialgym.errors import one_of

LEVELS = ("token", "turn")
TRUNCATIONS = ("bootstrap", "terminal")


class PPOOptions(SequenceOptions, total=False):
    """Arguments of `SequencePPO` that `NLPO` shares."""

    n_epochs: int
    gamma: float
    gae_lambda: float
    clip_range_vf: float | Schedule | None
    normalize_advantage: bool
    advantage_level: str
    vf_coef: float
    truncation: str
    value_learning_rate: float | Schedule | None


class SequencePPO(SequenceAlgorithm):
    """PPO whose update reads each dialogue once.

    On the same rollout its loss and gradient are those of `stable_baselines3.PPO`. A step is one
    token that the learner says.

    The coefficient of `kl` times log pi - log reference is taken off the reward at every token
    (Ziegler et al. 2019, equation 2).

    Args:
        policy, env: as of `OnlineAlgorithm`.
        n_epochs: passes over a rollout.
        gamma, gae_lambda: discount and decay, by `advantage_level`.
        clip_range_vf: of the values' change; None does not clip.
        normalize_advantage: to mean 0 and deviation 1 in each minibatch.
        advantage_level: "token", or "turn", where an utterance is one action.
        vf_coef: weight of the value loss.
        truncation: what follows a limit's cut. "bootstrap" counts gamma times the value of what
            would follow, read where the learner would speak again; "terminal" counts nothing, as
            after an end by the rules. Take the latter where the limit is part of the task, and
            with gamma 1 where a limit cuts all dialogues: values then have no end to learn from.
        value_learning_rate: of what makes values alone, a number or a schedule: the value head,
            and its backbone where `policy_kwargs` has `share_features_extractor=False`. None takes
            `learning_rate` for all.
        kwargs: further arguments of `SequenceAlgorithm`.

    Raises:
        ValueError: a name that cannot be, or as of `OnlineAlgorithm`.
    """

    clip_range_vf: FloatSchedule | None
    learns_state_values = True

    def __init__(
        self,
        policy: str | type[ActorCriticPolicy],
        env: GymEnv | str,
        n_epochs: int = 4,
        gamma: float = 1.0,
        gae_lambda: float = 0.95,
        clip_range_vf: float | Schedule | None = None,
        normalize_advantage: bool = True,
        advantage_level: str = "token",
        vf_coef: float = 0.5,
        truncation: str = "bootstrap",
        value_learning_rate: float | Schedule | None = None,
        **kwargs: Unpack[SequenceOptions],
    ) -> None:
        one_of("advantage_level", advantage_level, LEVELS, "SequencePPO")
        one_of("truncation", truncation, TRUNCATIONS, "SequencePPO")
        decay = {"gamma": gamma, "gae_lambda": gae_lambda, "vf_coef": vf_coef}
        check_bounds(type(self).__name__, decay)
        self.clip_range_vf = None if clip_range_vf is None else FloatSchedule(clip_range_vf)
        self.normalize_advantage = normalize_advantage
        self.advantage_level = advantage_level
        self.truncation = truncation
        self.value_learning_rate = value_learning_rate
        super().__init__(policy, env, n_epochs=n_epochs, **kwargs)
        self.gamma, self.gae_lambda, self.vf_coef = gamma, gae_lambda, vf_coef

    def _setup_model(self) -> None:
        super()._setup_model()
        if self.value_learning_rate is not None and self.processes.sharded:
            raise ValueError(
                f"{self.algorithm}: value_learning_rate is unavailable with sharded weights "
                "(accelerate, distributed_type: FSDP or DEEPSPEED); leave it out, or use MULTI_GPU"
            )
        self._separate_values()

    # The rollout and what it is worth

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
        cut: list[tuple[int, int]] = []  # step and row of dialogues that a limit cut off
        last_seen: list[Any] = []
        for step in range(n_rollout_steps):
            ended = self._step(env, callback)
            if ended is None:
                return False
            for row, info in ended.items():
                if info.get("TimeLimit.truncated", False):
                    cut.append((step, row))
                    last_seen.append(info["terminal_observation"])
        rewards = rollout_buffer.steps("rewards")
        if cut and self.truncation == "bootstrap":
            at = tuple(np.array(cut).T)
            spoken = rollout_buffer.steps("lengths")[at] + 1
            rewards[at] += self.gamma * self._values_after(last_seen, spoken)
        self.rollout = self._rollout(rewards)
        if self.served is not None:
            self.served.ahead(Observed.of(self._last_obs), self.rng)
        callback.update_locals(locals())
        callback.on_rollout_end()
        return True

    def _rollout(self, rewards: np.ndarray) -> Rollout:
        """From the rollout in the buffer to sequences with advantages and value targets."""
        values = self.rollout_buffer.steps("values")
        sequences = self._sequences(np.ones(rewards.shape, bool))
        if self.served is not None:
            values = sequences.grid(self._all_log_probs(sequences, self._read_values), values.shape)
        log_probs = sequences.columns["log_probs"]
        reference = self._reference_log_probs(sequences)
        if reference is not None:
            penalty = self.kl_coef * (log_probs - reference)
            rewards = rewards - sequences.grid(penalty, rewards.shape)
        advantages, targets = self.advantages(rewards, values)
        explained = explained_variance(values.flatten(), targets.flatten())
        self.logger.record("train/explained_variance", float(explained))
        return Rollout(
            sequences,
            sequences.columns["actions"],
            log_probs,
            sequences.column(advantages),
            sequences.column(values),
            sequences.column(targets),
            reference,
        )

    def _read_values(self, tokens: Tensor, at: Tensor, actions: Tensor, *rest: Any) -> Tensor:
        """Values (N,) of decisions within whole sequences."""
        return self.policy.evaluate_sequences(tokens, at, actions, *rest)[0]

    def advantages(self, rewards: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Advantages and value targets (n_steps, n_envs) of the rollout in the buffer."""
        dones = self.rollout_buffer.steps("dones")
        last_values = self._last_values(Observed.of(self._last_obs), dones[-1])
        if self.advantage_level == "turn":
            rest = self._turn_ends(), self.gamma, self.gae_lambda
            return turn_gae(rewards, values, dones, last_values, *rest)
        advantages = gae(rewards, values, dones, last_values, self.gamma, self.gae_lambda)
        return advantages, advantages + values

    def _last_values(self, last: Observed, dones: np.ndarray) -> np.ndarray:
        """Bootstrap values (n_envs,) after the rollout; 0 for dialogues that have just begun."""
        values, going_on = np.zeros(len(dones), np.float32), np.flatnonzero(~dones)
        if len(going_on):
            with torch.no_grad(), self.updater.precision():
                read = self.policy.predict_values(last.select(going_on))
            values[going_on] = read.float().cpu().numpy()[:, 0]
        return values

    def _values_after(self, observations: list[Any], spoken: np.ndarray) -> np.ndarray:
        """Bootstrap values (b,) of dialogues that were truncated.

        Args:
            observations: the b last ones.
            spoken: (b,) tokens up to the learner's last one; what is beyond, another party said.
        """
        seen = Observed.of(_stacked(observations))
        tag = getattr(self.policy.token_space, "learner_tag", None)
        said = opened(seen.tokens.numpy(), seen.lengths, seen.lengths != spoken, tag)
        ends = (said != 0).cumsum(1).argmax(1) + 1
        tokens = torch.from_numpy(said[:, : ends.max()]).long().to(self.device)
        at = torch.from_numpy(np.arange(len(ends)) * tokens.shape[1] + ends - 1).to(self.device)
        features = None if seen.features is None else seen.features.to(self.device)
        with torch.no_grad(), self.updater.precision():
            values, _, _ = self.policy.evaluate_sequences(
                tokens, at, torch.zeros_like(at), None, features
            )
        read: np.ndarray = values.float().cpu().numpy()
        return read

    # The update

    def loss(self, batch: SequenceBatch) -> tuple[Tensor, dict[str, Tensor]]:
        """Clipped surrogate + vf_coef * value loss - ent_coef * entropy (equation 9 there)."""
        remaining = self._current_progress_remaining
        ent_coef = self.ent_coef(remaining)  # type: ignore[operator]
        values, log_prob, entropy = self.policy.evaluate_sequences(
            batch.tokens, batch.at, batch.actions, batch.allowed, batch.features, ent_coef != 0
        )
        assert batch.values is not None
        assert batch.targets is not None
        clip_range = self.clip_range(remaining)
        clip_vf = None if self.clip_range_vf is None else self.clip_range_vf(remaining)
        log_ratio = log_prob - batch.log_probs
        policy_loss, metrics = clipped_surrogate(batch, log_ratio, (clip_range, clip_range))
        value = value_loss(values, batch.targets, batch.values, clip_vf)
        loss = policy_loss + self.vf_coef * value
        if ent_coef:
            loss = loss - ent_coef * entropy
        return loss, {**metrics, "value_loss": value, "entropy": entropy}

    def _minibatch_advantages(self, rows: Tensor) -> Tensor:
        """Advantages (N,), with mean 0 and deviation 1 over the `rows` of all processes."""
        advantages = self.rollout.advantages
        if not self.normalize_advantage:
            return advantages
        ours = advantages[rows].double()
        sums = torch.stack([ours.sum(), ours.square().sum()]).tolist()
        count, total, squares = self.processes.sums(len(rows), *sums)
        if count < 2:
            return advantages
        mean = total / count
        deviation = max((squares - count * mean**2) / (count - 1), 0.0) ** 0.5
        return (advantages - mean) / (deviation + 1e-8)


# Losses of single decisions, (n,) each


class Decisions(Protocol):
    """n decisions of a rollout, of tokens or acts."""

    @property
    def log_probs(self) -> Tensor:
        """(n,), under the policy that chose."""

    @property
    def advantages(self) -> Tensor:
        """(n,)."""


def clipped_surrogate(
    batch: Decisions, log_ratio: Tensor, clip_range: tuple[float, float]
) -> tuple[Tensor, dict[str, Tensor]]:
    """-min(ratio A, clip(ratio, 1 - low, 1 + high) A) (Schulman et al. 2017, equation 7).

    Args:
        batch: n decisions.
        log_ratio: (n,), log pi(a | s) / pi_old(a | s).
        clip_range: low and high, by how much a ratio may count below and above 1.
    """
    ratio = log_ratio.exp()
    clipped = ratio.clamp(1 - clip_range[0], 1 + clip_range[1])
    loss = -(batch.advantages * ratio).minimum(batch.advantages * clipped)
    return loss, policy_metrics(loss, log_ratio, clipped != ratio)


@torch.no_grad()
def policy_metrics(loss: Tensor, log_ratio: Tensor, clipped: Tensor) -> dict[str, Tensor]:
    """Metrics (n,) of how far the policy has moved."""
    return {
        "policy_gradient_loss": loss,
        # Schulman 2020, "Approximating KL divergence": k3
        "approx_kl": log_ratio.exp() - 1 - log_ratio,
        "clip_fraction": clipped.float(),
    }


def value_loss(
    values: Tensor, targets: Tensor, old_values: Tensor, clip_range: float | None
) -> Tensor:
    """Squared error; with `clip_range`, of values kept that near to the old ones."""
    if clip_range is not None:
        values = old_values + (values - old_values).clamp(-clip_range, clip_range)
    return (targets - values).square()


def opened(
    tokens: np.ndarray, lengths: np.ndarray, heard: np.ndarray, tag: int | None
) -> np.ndarray:
    """Tokens (B, L) of dialogues that a limit cut off, up to where the learner would speak again.

    Values are learned of states in which the learner speaks and of no others, so its `tag` is added
    where another party was `heard` (B,) last, no tag stands there yet and the window has room.
    """
    at = np.arange(len(tokens))
    rows = heard & (tokens[at, lengths - 1] != tag) & (lengths < tokens.shape[1])
    if tag is None or not rows.any():
        return tokens
    tokens = tokens.copy()
    tokens[at[rows], lengths[rows]] = tag
    return tokens


def _stacked(observations: list[Any]) -> Any:
    """Observations of single rows as those of a batch."""
    if isinstance(observations[0], dict):
        return {key: np.stack([seen[key] for seen in observations]) for key in observations[0]}
    return np.stack(observations)
