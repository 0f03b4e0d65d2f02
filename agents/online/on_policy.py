"""A rollout and its update, over whole sequences: the base of all online learners of tokens.

An algorithm is what it makes of a rollout (`collect_rollouts`) and one `loss(batch)`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Unpack

import numpy as np
import torch
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.type_aliases import GymEnv, Schedule
from stable_baselines3.common.utils import FloatSchedule
from stable_baselines3.common.vec_env import VecEnv
from torch import Tensor

from agents.buffers.sequences import (
    Part,
    Rollout,
    SequenceBatch,
    SequenceBuffer,
    Sequences,
    minibatches,
)
from agents.models.cache import to_device
from agents.models.masking import packed_bits
from agents.models.observations import Observed, token_space
from agents.online.algorithm import OnlineAlgorithm, OnlineOptions
from agents.serving.sampler import ServedSampler
from agents.serving.server import RolloutServer
from agents.updater import check_rewards
from dialgym.errors import settings_as


class SequenceOptions(OnlineOptions, total=False):
    """Arguments that all of our algorithms hand on, the passes over a rollout aside."""

    clip_range: float | Schedule
    target_kl: float | None
    server: RolloutServer | Mapping[str, Any] | None


class SequenceAlgorithm(OnlineAlgorithm):
    """Plays dialogues, and learns from each of them as one sequence of tokens.

    A subclass leaves what came of the dialogues in `rollout`, and gives the `loss` of its
    decisions. To add one, see `GRPO`.

    Args:
        policy, env: as of `OnlineAlgorithm`.
        n_epochs: as of `OnlineAlgorithm`.
        clip_range: of the probability ratio; a number or a schedule.
        target_kl: a rollout's update stops when the policy is 1.5 times as far from the old one.
        server: an inference server that samples what is said, a `RolloutServer` or a mapping of its
            fields; None samples here. It knows no masks: `policy_kwargs={"mask": False}`.
        kwargs: further arguments of `OnlineAlgorithm`.
    """

    rollout_buffer: SequenceBuffer  # type: ignore[assignment]
    rollout: Rollout
    clip_range: FloatSchedule

    def __init__(
        self,
        policy: str | type[ActorCriticPolicy],
        env: GymEnv | str,
        n_epochs: int = 4,
        clip_range: float | Schedule = 0.2,
        target_kl: float | None = None,
        server: RolloutServer | Mapping[str, Any] | None = None,
        **kwargs: Unpack[OnlineOptions],
    ) -> None:
        self.clip_range, self.target_kl = FloatSchedule(clip_range), target_kl
        self.server = None if server is None else settings_as(RolloutServer, "server", server)
        if server is not None:
            kwargs = {"env_masks": False, **kwargs}
        super().__init__(policy, env, n_epochs=n_epochs, **kwargs)

    def _setup_model(self) -> None:
        super()._setup_model()
        self.served = None if self.server is None else self._make_sampler(self.server)

    def _make_sampler(self, server: RolloutServer) -> ServedSampler:
        """Raises ValueError for what a server cannot do."""
        masked = self.env_masks or self.policy.masker is not None or self.policy.reads_masks
        wrong = {
            'masks; give policy_kwargs={"mask": False}': masked,
            "features beside the tokens": self.policy.features is not None,
            "several processes": self.processes.count > 1,
        }
        for what in (what for what, is_so in wrong.items() if is_so):
            raise ValueError(f"{self.algorithm}: a server samples without {what}")
        return ServedSampler(server, token_space(self.observation_space))

    # The rollout

    def _step(
        self, env: VecEnv, callback: BaseCallback, playing: np.ndarray | None = None
    ) -> dict[int, dict[str, Any]] | None:
        """Say one token in each dialogue, or each of those `playing`, and keep what came of it.

        Rows that rest are not read, and what their env makes of the first token that may be said
        is not seen. Where a callback stops, the next `learn` goes on from what is seen then.

        Returns:
            The infos of the dialogues that ended, by row; None when a callback asked to stop.
        """
        assert self._last_obs is not None
        everything = Observed.of(self._last_obs)
        rows = np.arange(env.num_envs) if playing is None else np.flatnonzero(playing)
        seen = everything if len(rows) == env.num_envs else everything.select(rows)
        (said, values, log_probs), masks = self._sampled(env, seen, rows)

        def of_all(numbers: Any, dtype: Any = np.float32) -> np.ndarray:
            filled = np.zeros((env.num_envs, *numbers.shape[1:]), dtype)
            filled[rows] = numbers
            return filled

        actions = of_all(said, np.int64)
        if self.env_masks and len(rows) < env.num_envs:
            resting = np.flatnonzero(~playing)  # type: ignore[operator]
            actions[resting] = self._asked_masks(env, resting).argmax(1)
        new_obs, rewards, dones, infos = env.step(actions)
        if len(rows) < env.num_envs:
            dones = of_all(dones[rows], bool)
            infos = [info if on else {} for info, on in zip(infos, playing)]  # type: ignore[arg-type]
        rewards = of_all(np.asarray(rewards)[rows])
        check_rewards(rewards, self._where)
        self.num_timesteps += len(rows) * self.processes.count
        callback.update_locals(locals())
        if not callback.on_step():
            self._last_obs, self._last_episode_starts = new_obs, dones  # type: ignore[assignment]
            return None
        self._update_info_buffer(infos, dones)
        step = {
            "actions": actions,
            "values": of_all(values),
            "log_probs": of_all(log_probs),
            "rewards": rewards,
            "dones": dones,
        }
        step |= self._step_extras(infos)
        if masks is not None:
            step["masks"] = self._kept_masks(masks, rows, env.num_envs)
        features = None if everything.features is None else everything.features.numpy()
        tokens, lengths = everything.tokens.numpy(), everything.lengths
        starts = np.asarray(self._last_episode_starts, bool)
        self.rollout_buffer.add(tokens, lengths, starts, playing, features, **step)
        self._last_obs, self._last_episode_starts = new_obs, dones  # type: ignore[assignment]
        return {row: infos[row] for row in np.flatnonzero(dones).tolist()}

    def _sampled(self, env: VecEnv, seen: Observed, rows: np.ndarray) -> tuple[np.ndarray, Any]:
        """Tokens, values and log-probabilities (3, b) in the dialogues `rows`, and their masks.

        Two transfers wait for the device: the check of the probabilities, and the results. A server
        knows no values: they are 0, to be read off the whole rollout.
        """
        with torch.no_grad(), self.updater.precision():
            masks = self._masks(env, seen)
            if self.served is None:
                said, values, log_probs = self.policy(seen, action_masks=masks)
            else:
                said, log_probs = self.served.sample(self.policy, seen, rows, self.rng)
                values = torch.zeros(len(rows), 1)
            results = torch.stack([said.float(), values[:, 0].float(), log_probs.float()])
        return results.cpu().numpy(), masks  # token ids are exact in float32

    def _step_extras(self, infos: list[dict[str, Any]]) -> dict[str, np.ndarray]:
        """Further arrays (n_envs, ...) to keep of a step, by name; here none."""
        return {}

    def _masks(self, env: VecEnv, seen: Observed) -> np.ndarray | Tensor | None:
        """Masks (b, V) bool that have to be kept; None leaves them to the automaton."""
        if self.env_masks:
            return self._asked_masks(env, seen.rows)
        return seen.allowed if self._keeps_masks else None

    def _asked_masks(self, env: VecEnv, rows: np.ndarray | None) -> np.ndarray:
        """Masks (b, V) bool that the env says of `rows`, or of all."""
        indices = None if rows is None else rows.tolist()
        return np.stack(env.env_method("action_masks", indices=indices)).astype(bool)

    @property
    def _keeps_masks(self) -> bool:
        """Return True if `_masks` gives any."""
        return bool(self.env_masks) or self.policy.reads_masks

    def _kept_masks(self, masks: Any, rows: np.ndarray, total: int) -> Any:
        """Bits (total, ceil(V / 8)) of masks (b, V) of the `rows`, on the side where they are."""
        packed = packed_bits(torch.as_tensor(masks))
        if len(rows) == total:
            return packed
        kept = packed.new_zeros(total, packed.shape[1])
        kept[to_device(rows, packed.device)] = packed
        return kept

    def _sequences(self, keep: np.ndarray) -> Sequences:
        """The rollout's sequences, with what the update asks of every decision as columns."""
        buffer = self.rollout_buffer
        stored = {"actions": buffer.steps("actions"), "log_probs": buffer.steps("log_probs")}
        if self._keeps_masks:
            stored["masks"] = buffer.steps("masks")
        sequences = buffer.sequences(keep, self.device, **stored)
        if not self._keeps_masks and self.policy.masker is not None:
            sequences.add_states(self.policy.masker)
        if self.compute.autocast or self.served is not None:
            # A cached step rounds otherwise than a whole forward; ratios must start at one.
            found = self._all_log_probs(sequences, self.policy.sequence_log_prob)
            if self.served is not None:
                weights = self.served.importance(found - sequences.columns["log_probs"])
                sequences.columns["importance"] = weights
                self.logger.record("server/importance_weight", float(weights.mean()))
            sequences.columns["log_probs"] = found
        return sequences

    def _reference_log_probs(self, sequences: Sequences) -> Tensor | None:
        """Log-probabilities (N,) of the actions under the reference; None without one."""
        if self.reference is None:
            return None
        with self.reference.on(self.device):
            return self._all_log_probs(sequences, self.reference.log_prob)

    @torch.no_grad()
    def _all_log_probs(self, sequences: Sequences, log_prob: Callable[..., Tensor]) -> Tensor:
        """Log-probability (N,) of every decision, in order."""
        result = torch.empty(len(sequences), device=self.device)
        for part in sequences.parts(np.arange(len(sequences.sizes)), self.updater.most_tokens):
            actions = sequences.columns["actions"][part.rows]
            allowed = self._allowed(sequences, part.rows)
            with self.updater.precision():
                result[part.rows] = log_prob(part.tokens, part.at, actions, allowed, part.features)
        return result

    def _allowed(self, sequences: Sequences, rows: Tensor) -> Tensor | None:
        """The tokens allowed at the decisions `rows` (n,), as `SequenceBatch.allowed`."""
        if self._keeps_masks:
            return sequences.columns["masks"][rows]
        if self.policy.masker is not None:
            return self.policy.masker.allowed[sequences.columns["states"][rows]]
        return None

    def _turn_ends(self) -> np.ndarray:
        """(T, N) bool: the decisions of the rollout that ended an utterance."""
        buffer, last = self.rollout_buffer, Observed.of(self._last_obs)
        slid = np.concatenate([buffer.steps("slid")[1:], buffer.slid(last.tokens.numpy())[None]])
        return turn_ends(buffer.steps("lengths"), last.lengths, slid, buffer.steps("dones"))

    # The update

    def loss(self, batch: SequenceBatch) -> tuple[Tensor, dict[str, Tensor]]:
        """Loss (n,) of each decision, whose mean is minimised, and metrics (n,) to be logged."""
        raise NotImplementedError

    def train(self) -> None:
        """Improve the policy with the last rollout, in `n_epochs` passes over its dialogues."""
        self.policy.set_training_mode(True)
        self._update_learning_rate(self.policy.optimizer)
        self.logger.record("train/clip_range", self.clip_range(self._current_progress_remaining))
        logs: dict[str, list[float]] = defaultdict(list)
        with self.updater.improving():
            for _ in range(self.n_epochs):
                going_on = self._epoch(logs)
                self._n_updates += 1
                if not going_on:
                    break
        for name, values in logs.items():
            self.logger.record(f"train/{name}", float(np.mean(values)))
        for name, value in self.served.updated().items() if self.served else ():
            self.logger.record(f"server/{name}", value)
        self.logger.record("train/n_updates", self._n_updates, exclude="tensorboard")
        self._steer()

    def _epoch(self, logs: dict[str, list[float]]) -> bool:
        """One pass over the rollout; False when the policy has moved too far from the old one."""
        sequences = self.rollout.sequences
        [decisions] = self.processes.sums(len(sequences))
        count = max(1, round(decisions / (self.batch_size * self.processes.count)))
        for chosen in self._minibatches(count):
            own = int(sequences.sizes[chosen].sum())
            if not any(self.processes.sums(own)):  # a sequence larger than a minibatch leaves some
                continue
            metrics = self.updater.backward(
                self.loss,
                self.batches(chosen),
                own,
                spare=lambda: self._batch(sequences.shortest(), self.rollout.advantages),
            )
            moved = metrics.get("approx_kl", 0.0)  # none of a minibatch without a sequence
            too_far = self.target_kl is not None and moved > 1.5 * self.target_kl
            if not too_far:
                metrics |= self.updater.step()
            for name, value in metrics.items():
                logs[name].append(value)
            if too_far:
                return False
        return True

    def _minibatches(self, count: int) -> list[np.ndarray]:
        """Sequences (s,) of each of `count` minibatches, or (s, k) of those that stay together."""
        return minibatches(self.rollout.sequences.sizes, count, self.rng)

    def batches(self, chosen: np.ndarray) -> Iterator[SequenceBatch]:
        """The sequences `chosen` of the rollout: a minibatch, in pieces that fit in memory."""
        sequences = self.rollout.sequences
        advantages = self._minibatch_advantages(sequences.decisions(chosen))
        if (importance := sequences.columns.get("importance")) is not None:
            advantages = advantages * importance
        weights = self._token_weights(chosen)
        for part in sequences.parts(chosen, self.updater.most_tokens):
            batch = self._batch(part, advantages)
            yield batch if weights is None else batch._replace(weights=weights[part.rows])

    def _batch(self, part: Part, advantages: Tensor) -> SequenceBatch:
        allowed = self._allowed(self.rollout.sequences, part.rows)
        return self.rollout.batch(part, advantages, allowed)

    def _token_weights(self, chosen: np.ndarray) -> Tensor | None:
        """Weights (N,) of decisions in the mean of a minibatch of the sequences `chosen` (s,)."""
        return None

    def _minibatch_advantages(self, rows: Tensor) -> Tensor:
        """Advantages (N,) for a minibatch of the decisions `rows`; the others are not looked at."""
        return self.rollout.advantages

    def _steer(self) -> None:
        """Log the divergence of the rollout and the coefficient that it was learned with; steer."""
        if self.rollout.reference_log_probs is None:
            return
        kl = self.rollout.log_probs - self.rollout.reference_log_probs
        total, count = self.processes.sums(float(kl.sum()), len(kl))
        mean = total / max(count, 1)
        self.logger.record("reference/kl", mean)
        self.logger.record("reference/kl_coef", self.kl_coef)
        self.kl_coef = self.kl.steered(self.kl_coef, mean, int(count))


def turn_ends(
    lengths: np.ndarray, last_lengths: np.ndarray, slid: np.ndarray, dones: np.ndarray
) -> np.ndarray:
    """Find the decisions (T, N) that ended an utterance: more than their own token was appended.

    Where a window slides, as many tokens may leave as are appended.

    Args:
        lengths: (T, N) tokens of the observation before each decision.
        last_lengths: (N,) of the observations after the last ones.
        slid: (T, N) bool, the observation after the decision does not begin with that before it.
        dones: (T, N) bool.
    """
    after = np.concatenate([lengths[1:], last_lengths[None]])
    return dones | slid | (after - lengths != 1)
