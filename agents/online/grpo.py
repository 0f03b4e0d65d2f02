"""Policy gradients with the mean return of a group as baseline: GRPO and its kin."""

from __future__ import annotations

from typing import Any

import numpy as np
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.type_aliases import GymEnv, Schedule
from stable_baselines3.common.utils import FloatSchedule
from stable_baselines3.common.vec_env import VecEnv
from torch import Tensor

from agents.buffers.sequences import Batch, Rollout, SequenceBuffer
from agents.models.observations import Observed
from agents.online.credit import (
    BASELINES,
    CREDITS,
    group_advantages,
    same_situation,
    same_turn,
    turn_advantages,
    turn_numbers,
    turn_returns,
)
from agents.online.on_policy import SequenceAlgorithm
from agents.online.ppo import turn_ends
from agents.online.reference import k3
from agents.online.surrogates import SURROGATES
from dialgym.errors import one_of


class GRPO(SequenceAlgorithm):
    """Group relative policy optimisation (Shao et al. 2024), without a value function.

    Each iteration plays one episode in every dialogue; those that have ended rest until the others
    have. Dialogues of a group begin alike (their env is reset with the same seed); an episode's
    advantage, at all its tokens, is its return less the group's baseline. Losses are averaged over
    tokens, so that long replies are not favoured (Yu et al. 2025, section 3.3).

    With `baseline="leave-one-out"`, `scale=False`, `n_epochs=1` it is RLOO (Ahmadian et al. 2024);
    with `group_size=None` too, REINFORCE with the batch's mean return as baseline. Without `scale`
    no group counts for more because its returns are alike (Dr.GRPO, Liu et al. 2025, arXiv
    2503.20783).

    `credit="turn"` gives each turn the return from it on, less that of the group's turns of its
    number (Zeng et al. 2025, arXiv 2505.11821). `credit="situation"` adds to the episode's
    advantage `situation_weight` times that of the turn among turns of the group which began in the
    same situation (GiGPO, Feng et al. 2025, arXiv 2505.10978, equation 8); it needs an env made
    with `anchors=True`.

    The coefficient of `kl` weighs the divergence (estimator k3) in the loss.

    Args:
        policy: as of `OnlineAlgorithm`; its value head is left alone.
        env: the number of dialogues must be a multiple of `group_size`.
        n_epochs: passes over a rollout.
        clip_range: of the probability ratio; a number or a schedule.
        clip_range_high: above 1, where it is to be another than below (DAPO, Yu et al. 2025, arXiv
            2503.14476, section 3.1); None takes `clip_range`.
        surrogate: "token", the clipped ratio of each token; "sequence", that of a dialogue's mean
            log ratio (GSPO); "weight", the clipped ratio as a weight (CISPO). See `surrogates`.
        target_kl: a rollout's update stops when the policy is 1.5 times as far from the old one.
        group_size: dialogues of a group; None makes all of them one group, each begun by itself.
        baseline: "mean" of the group, or of the group's other members ("leave-one-out").
        scale: divide advantages by the deviation of the group's returns.
        credit: "episode", "turn" or "situation".
        gamma: the discount from one turn to the next, where turns are credited.
        situation_weight: of the advantages among equal situations.
        kwargs: further arguments of `OnlineAlgorithm`; what goes on beyond `n_steps` tokens
            counts as it stands.

    Raises:
        ValueError: a number or name that cannot be, or as of `OnlineAlgorithm`.
    """

    clip_range: FloatSchedule

    def __init__(
        self,
        policy: str | type[ActorCriticPolicy],
        env: GymEnv | str,
        n_epochs: int = 1,
        clip_range: float | Schedule = 0.2,
        clip_range_high: float | None = None,
        surrogate: str = "token",
        target_kl: float | None = None,
        group_size: int | None = 8,
        baseline: str = "mean",
        scale: bool = True,
        credit: str = "episode",
        gamma: float = 1.0,
        situation_weight: float = 1.0,
        **kwargs: Any,
    ) -> None:
        one_of("baseline", baseline, BASELINES, "GRPO")
        one_of("credit", credit, CREDITS, "GRPO")
        one_of("surrogate", surrogate, SURROGATES, "GRPO")
        self.credit, self.turn_gamma, self.situation_weight = credit, gamma, situation_weight
        self.clip_range, self.clip_range_high = FloatSchedule(clip_range), clip_range_high
        self.surrogate = surrogate
        self.target_kl = target_kl
        self.group_size = group_size
        self.baseline = baseline
        self.scale = scale
        super().__init__(policy, env, n_epochs=n_epochs, **kwargs)

    def _setup_model(self) -> None:
        super()._setup_model()
        self.clip_range = FloatSchedule(self.clip_range)  # `load` may have put a number there
        size = self.group_size
        if size is not None and (size < 2 or self.n_envs % size):
            raise ValueError(
                f"GRPO: group_size must be at least 2 and divide the number of dialogues, got "
                f"{size} and {self.n_envs}; None makes all of them one group"
            )
        # The log's mean is over all episodes of a rollout: the last to end are the longest ones.
        self._stats_window_size = max(self._stats_window_size, self.n_envs)

    # The rollout

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
        begun, playing = self.num_timesteps, np.ones(env.num_envs, bool)
        kept: list[np.ndarray] = []
        while playing.any() and len(kept) < n_rollout_steps:
            kept.append(playing.copy())
            ended = self._step(env, callback, playing)
            if ended is None:
                return False
            playing[list(ended)] = False
        said = np.stack(kept)
        [tokens] = self.processes.sums(float(said.sum()))  # processes play on for unequal times
        self.num_timesteps = begun + int(tokens)
        self.rollout = self._rollout(said, playing)
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
        if self.credit == "situation":
            self._situations = np.zeros(env.num_envs, np.uint64)
            self._look(env.unwrapped.reset_infos)
            if not self._situations.all():
                raise ValueError(
                    'GRPO: credit="situation" needs infos with an `anchor`, got '
                    f"{sorted(env.unwrapped.reset_infos[0])}; make the env with anchors=True"
                )

    def _look(self, infos: list[dict[str, Any]]) -> None:
        """Take note of the situation that each dialogue is in."""
        for row, info in enumerate(infos):
            if "anchor" in info:
                self._situations[row] = int(info["anchor"], 16)

    def _noted(self, infos: list[dict[str, Any]]) -> dict[str, np.ndarray]:
        if self.credit != "situation":
            return {}
        before = self._situations.copy()
        self._look(infos)
        return {"situations": before}

    def _rollout(self, said: np.ndarray, playing: np.ndarray) -> Rollout:
        """From the rollout in the buffer to sequences with advantages.

        Args:
            said: (n_steps, n_envs) bool, where a token was said.
            playing: (n_envs,) bool, dialogues that were stopped before their end.
        """
        rewards = self.rollout_buffer.steps("rewards")
        returns = rewards.sum(0, dtype=np.float64)
        for row in np.flatnonzero(playing).tolist():  # they count as they stand, in the log too
            episode = {"r": float(returns[row]), "l": int(said[:, row].sum()), "t": 0.0}
            self.ep_info_buffer.append(episode)  # type: ignore[union-attr]
        advantages = self._advantages(rewards * said, returns, said)
        sequences = self._sequences(said)
        return Rollout(
            sequences,
            sequences.columns["actions"],
            sequences.columns["log_probs"],
            sequences.column(advantages),
            reference_log_probs=self._reference_log_probs(sequences),
        )

    def _advantages(self, rewards: np.ndarray, returns: np.ndarray, said: np.ndarray) -> np.ndarray:
        """(T, n) float32, of rewards (T, n), returns (n,) and where a token was said (T, n)."""
        groups = np.arange(self.n_envs) // (self.group_size or self.n_envs)
        how = self.baseline, self.scale
        whole = np.broadcast_to(group_advantages(returns, groups, *how), said.shape)
        if self.credit == "episode":
            return whole
        buffer = self.rollout_buffer
        last = Observed.of(self._last_obs).lengths
        ends = turn_ends(buffer.steps("lengths"), last, buffer.steps("dones")) & said
        turns = turn_numbers(ends)
        ahead = turn_returns(rewards, turns, self.turn_gamma)
        if self.credit == "turn":
            labels = same_turn(len(ahead), groups)
            return turn_advantages(ahead, turns, said, labels, *how)
        labels = same_situation(buffer.steps("situations"), turns, said, groups)
        among = turn_advantages(ahead, turns, said, labels, *how)
        return whole + np.float32(self.situation_weight) * among

    # The update

    def loss(self, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        """Surrogate + kl_coef * k3 - ent_coef * entropy (Shao et al. 2024, equation 3)."""
        remaining = self._current_progress_remaining
        ent_coef = self.ent_coef(remaining)  # type: ignore[operator]
        _, log_prob, entropy = self.policy.evaluate_sequences(
            batch.tokens, batch.at, batch.actions, batch.allowed, batch.features, ent_coef != 0
        )
        low = self.clip_range(remaining)
        high = low if self.clip_range_high is None else self.clip_range_high
        loss, metrics = SURROGATES[self.surrogate](batch, log_prob, (low, high))
        metrics["entropy"] = entropy
        if ent_coef:
            loss = loss - ent_coef * entropy
        if batch.reference_log_probs is not None:
            metrics["reference_kl"] = k3(batch.reference_log_probs - log_prob)
            loss = loss + self.kl_coef * metrics["reference_kl"]
        return loss, metrics

    def train(self) -> None:
        """Improve the policy with the last rollout."""
        self.logger.record("train/clip_range", self.clip_range(self._current_progress_remaining))
        super().train()
