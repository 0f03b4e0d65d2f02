"""Rollouts of one episode in every dialogue, those of a group begun alike."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.type_aliases import GymEnv
from stable_baselines3.common.vec_env import VecEnv
from torch import Tensor

from agents.buffers.sequences import Rollout, SequenceBatch, SequenceBuffer
from agents.online.credit import all_equal
from agents.online.on_policy import SequenceAlgorithm, SequenceOptions
from agents.online.reference import k3
from dialgym.errors import whole_number


class GroupOptions(SequenceOptions, total=False):
    """Arguments of `GroupAlgorithm`."""

    group_size: int | None
    resample: int
    n_epochs: int


class GroupAlgorithm(SequenceAlgorithm):
    """Plays one episode in every dialogue, and compares those of a group.

    Dialogues that have ended rest until the others have. Dialogues of a group begin alike: their
    env is reset with the same seed. A subclass makes the `Rollout` of what was said (`_rollout`)
    and gives the `policy_loss`. The coefficient of `kl` weighs the divergence (estimator k3) in the
    loss.

    A group whose returns are all equal teaches nothing. With `resample` it is begun again elsewhere
    and played again, at most so many times, and what it said before is left out of the update
    (dynamic sampling: DAPO, Yu et al. 2025, arXiv 2503.14476, section 3.2).

    Args:
        policy: as of `OnlineAlgorithm`; its value head is left alone.
        env: the number of dialogues must be a multiple of `group_size`.
        n_epochs: passes over a rollout (TRL's `num_iterations`).
        group_size: dialogues of a group; None makes all of a process one group, each begun by
            itself.
        resample: how many more times groups without variance are played in a rollout.
        kwargs: further arguments of `SequenceAlgorithm`; what goes on beyond `n_steps` tokens
            counts as it stands.

    Raises:
        ValueError: a number that cannot be, or as of `OnlineAlgorithm`.
    """

    def __init__(
        self,
        policy: str | type[ActorCriticPolicy],
        env: GymEnv | str,
        n_epochs: int = 1,
        group_size: int | None = 8,
        resample: int = 0,
        **kwargs: Unpack[SequenceOptions],
    ) -> None:
        self.resample = whole_number("resample", resample, type(self).__name__, 0)
        self.group_size = group_size
        super().__init__(policy, env, n_epochs=n_epochs, **kwargs)

    def _setup_model(self) -> None:
        super()._setup_model()
        size, name = self.group_size, type(self).__name__
        if size is not None and (size < 2 or self.n_envs % size):
            raise ValueError(
                f"{name}: group_size must be at least 2 and divide the number of dialogues, got "
                f"{size} and {self.n_envs}; None makes all of them one group"
            )
        if size is None and self.resample:
            raise ValueError(
                f"{name}: resample={self.resample} plays groups again, got group_size=None, which "
                "makes all dialogues one group; give a group_size"
            )
        # The log's mean is over all episodes of a rollout: the last to end are the longest ones.
        episodes = self.n_envs * (1 + self.resample)
        self._stats_window_size = max(self._stats_window_size, episodes)

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
        begun, tokens = self.num_timesteps, 0
        said, chosen = np.zeros((0, env.num_envs), bool), np.ones(env.num_envs, bool)
        equal: list[float] = []
        for _ in range(1 + self.resample):
            self._begin(env, chosen)
            played = self._play(env, callback, chosen, n_rollout_steps)
            if played is None:
                return False
            tokens += int(played.sum())
            said[:, chosen] = False  # of an episode that another one replaces
            said = np.concatenate([said, played])
            chosen = all_equal(self._returns(said), self._groups)
            equal.append(float(chosen.mean()))
            if not chosen.any():
                break
        again = self._play_again(env, n_rollout_steps)
        tokens += int(again.sum())
        said = np.concatenate([said, again])
        self.logger.record("rollout/equal_groups", equal[0])
        if self.resample:
            self.logger.record("rollout/equal_groups_left", equal[-1])
        [total] = self.processes.sums(float(tokens))  # processes play on for unequal times
        self.num_timesteps = begun + int(total)
        self.rollout = self._rollout(said)
        callback.update_locals(locals())
        callback.on_rollout_end()
        return True

    def _play(
        self, env: VecEnv, callback: BaseCallback, chosen: np.ndarray, most: int | np.ndarray
    ) -> np.ndarray | None:
        """Play an episode in each of the `chosen` rows (n_envs,), of at most `most` tokens.

        Args:
            most: of all rows, or of each (n_envs,).

        Returns:
            (t, n_envs) bool, where a token was said; None when a callback asked to stop.
        """
        going_on, kept = chosen.copy(), list[np.ndarray]()
        while (playing := going_on & (len(kept) < most)).any():
            kept.append(playing)
            ended = self._step(env, callback, playing)
            if ended is None:
                return None
            going_on[list(ended)] = False
        said = np.stack(kept)
        returns = self.rollout_buffer.steps("rewards")[-len(kept) :].sum(0)
        for row in np.flatnonzero(going_on).tolist():  # they count as they stand, in the log too
            episode = {"r": float(returns[row]), "l": int(said[:, row].sum()), "t": 0.0}
            self.ep_info_buffer.append(episode)  # type: ignore[union-attr]
        return said

    def _begin(self, env: VecEnv, chosen: np.ndarray) -> None:
        """Reset all dialogues, those of a group with the same seed, to play the `chosen` rows."""
        self._last_obs = reset_alike(env, self.rng, self.group_size)
        self._last_episode_starts = np.ones(env.num_envs, bool)
        self._begun(env.unwrapped.reset_infos, chosen)

    def _begun(self, infos: list[dict[str, Any]], chosen: np.ndarray) -> None:
        """Read the infos of dialogues that have just begun; here nothing.

        Args:
            infos: of all rows.
            chosen: (n_envs,) bool, rows that are going to be played.
        """

    @property
    def _groups(self) -> np.ndarray:
        """(n_envs,) the number of each dialogue's group."""
        return np.arange(self.n_envs) // (self.group_size or self.n_envs)

    def _returns(self, said: np.ndarray) -> np.ndarray:
        """Returns (n_envs,) float64: sums of rewards where a token was `said` (T, n_envs)."""
        returns: np.ndarray = (self.rollout_buffer.steps("rewards") * said).sum(0, np.float64)
        return returns

    def _play_again(self, env: VecEnv, most: int) -> np.ndarray:
        """Hold further dialogues, of at most `most` tokens; here none.

        Returns:
            (t, n_envs) bool, where a token was said.
        """
        return np.zeros((0, env.num_envs), bool)

    def _ends(self, said: np.ndarray) -> np.ndarray:
        """Tokens that end a turn, (T, n) bool."""
        ends: np.ndarray = self._turn_ends() & said
        return ends

    def _rollout(self, said: np.ndarray) -> Rollout:
        """Make the rollout that `train` reads of the one in the buffer.

        Args:
            said: (n_steps, n_envs) bool, where a token was said that is learned from.
        """
        raise NotImplementedError

    # The update

    def loss(self, batch: SequenceBatch) -> tuple[Tensor, dict[str, Tensor]]:
        """`policy_loss` + kl_coef * k3 - ent_coef * entropy (Shao et al. 2024, equation 3).

        The first two are averaged by the weights of the batch, if it has any, the entropy over all
        tokens alike. Where the rollout has targets of values, their squared errors are added.
        """
        ent_coef = self.ent_coef(self._current_progress_remaining)  # type: ignore[operator]
        values, log_prob, entropy = self.policy.evaluate_sequences(
            batch.tokens, batch.at, batch.actions, batch.allowed, batch.features, ent_coef != 0
        )
        loss, metrics = self.policy_loss(batch, log_prob)
        metrics["entropy"] = entropy
        if batch.reference_log_probs is not None:
            metrics["reference_kl"] = k3(batch.reference_log_probs - log_prob)
            loss = loss + self.kl_coef * metrics["reference_kl"]
        if batch.weights is not None:
            loss = loss * batch.weights
        if batch.targets is not None:
            metrics["value_loss"] = (batch.targets - values).square()
            loss = loss + metrics["value_loss"]
        if ent_coef:
            loss = loss - ent_coef * entropy
        return loss, metrics

    def policy_loss(
        self, batch: SequenceBatch, log_prob: Tensor
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Loss (n,) of each decision without divergence and entropy, and metrics (n,).

        Args:
            batch: n decisions.
            log_prob: (n,) of their actions now.
        """
        raise NotImplementedError


def reset_alike(env: VecEnv, rng: np.random.Generator, group_size: int | None) -> Any:
    """Reset all dialogues, those of a group with the same seed; the observations."""
    size = group_size or 1
    seeds = np.repeat(rng.integers(2**31, size=env.num_envs // size), size)
    # Stable-Baselines3 has no public way to give each row a seed of its own choice.
    env.unwrapped._seeds = list(map(int, seeds))
    return env.reset()
