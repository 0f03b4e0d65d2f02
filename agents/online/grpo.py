"""Policy gradients with the mean return of a group as baseline: GRPO and its kin."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.type_aliases import GymEnv
from stable_baselines3.common.vec_env import VecEnv
from torch import Tensor

from agents.buffers.sequences import Rollout, SequenceBatch, SequenceBuffer, Sequences
from agents.models.observations import Observed, token_space
from agents.online.credit import (
    BASELINES,
    CREDITS,
    all_equal,
    group_advantages,
    same_situation,
    same_turn,
    turn_advantages,
    turn_numbers,
)
from agents.online.on_policy import SURROGATES, SequenceAlgorithm, SequenceOptions
from agents.online.ppo import turn_ends
from agents.online.reference import k3
from agents.online.truths import continued, probabilities, probability_rises, turn_starts
from agents.returns import turn_returns
from dialgym.errors import one_of, whole_number


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

    With `truth_gain` a turn is also rewarded for the rise of the policy's own probability of naming
    the truth, from the turn's beginning to that of the next: the geometric mean over the tokens
    that name it, none for the last turn (IGPO, Wang et al. 2025, arXiv 2510.14967, section 3.2). It
    needs an env made with `truths=True`, and belongs to `credit="turn"`. What an env knows of the
    truth by itself is paid by its `belief_gain`.

    A group whose returns are all equal teaches nothing. With `resample` it is begun again elsewhere
    and played again, at most so many times, and what it said before is left out of the update
    (dynamic sampling: DAPO, Yu et al. 2025, arXiv 2503.14476, section 3.2).

    The coefficient of `kl` weighs the divergence (estimator k3) in the loss.

    Args:
        policy: as of `OnlineAlgorithm`; its value head is left alone.
        env: the number of dialogues must be a multiple of `group_size`.
        n_epochs: passes over a rollout.
        clip_range_high: above 1, where it is to be another than below (DAPO, Yu et al. 2025, arXiv
            2503.14476, section 3.1); None takes `clip_range`.
        surrogate: "token", the clipped ratio of each token; "sequence", that of a dialogue's mean
            log ratio (GSPO); "weight", the clipped ratio as a weight (CISPO). See `surrogates`.
        group_size: dialogues of a group; None makes all of them one group, each begun by itself.
        baseline: "mean" of the group, or of the group's other members ("leave-one-out").
        scale: divide advantages by the deviation of the group's returns.
        credit: "episode", "turn" or "situation".
        gamma: the discount from one turn to the next, where turns are credited.
        situation_weight: of the advantages among equal situations.
        truth_gain: reward of a rise from 0 to 1 of the policy's probability of the truth.
        resample: how many more times groups without variance are played in a rollout.
        kwargs: further arguments of `SequenceAlgorithm`; what goes on beyond `n_steps` tokens
            counts as it stands.

    Raises:
        ValueError: a number or name that cannot be, or as of `OnlineAlgorithm`.
    """

    def __init__(
        self,
        policy: str | type[ActorCriticPolicy],
        env: GymEnv | str,
        n_epochs: int = 1,
        clip_range_high: float | None = None,
        surrogate: str = "token",
        group_size: int | None = 8,
        baseline: str = "mean",
        scale: bool = True,
        credit: str = "episode",
        gamma: float = 1.0,
        situation_weight: float = 1.0,
        truth_gain: float = 0.0,
        resample: int = 0,
        **kwargs: Unpack[SequenceOptions],
    ) -> None:
        one_of("baseline", baseline, BASELINES, "GRPO")
        one_of("credit", credit, CREDITS, "GRPO")
        one_of("surrogate", surrogate, SURROGATES, "GRPO")
        self.credit, self.turn_gamma, self.situation_weight = credit, gamma, situation_weight
        self.clip_range_high = clip_range_high
        self.surrogate = surrogate
        self.truth_gain = truth_gain
        self.resample = whole_number("resample", resample, "GRPO", 0)
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
        if size is None and self.resample:
            raise ValueError(
                f"GRPO: resample={self.resample} plays groups again, got group_size=None, which "
                "makes all dialogues one group; give a group_size"
            )
        if self.truth_gain and self._keeps_masks:
            raise ValueError(
                f"GRPO: truth_gain={self.truth_gain} asks how likely the policy is to say what it "
                "has not said, and the masks there are not known; expected an env whose masks "
                "follow from its constraint, without masks in observations or by call"
            )
        # The log's mean is over all episodes of a rollout: the last to end are the longest ones.
        episodes = self.n_envs * (1 + self.resample)
        self._stats_window_size = max(self._stats_window_size, episodes)

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
        begun, tokens = self.num_timesteps, 0
        said, chosen = np.zeros((0, env.num_envs), bool), np.ones(env.num_envs, bool)
        equal: list[float] = []
        for _ in range(1 + self.resample):
            self._begin(env)
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
        self, env: VecEnv, callback: BaseCallback, chosen: np.ndarray, most: int
    ) -> np.ndarray | None:
        """Play an episode in each of the `chosen` rows (n_envs,), of at most `most` tokens.

        Returns:
            (t, n_envs) bool, where a token was said; None when a callback asked to stop.
        """
        playing, kept = chosen.copy(), list[np.ndarray]()
        while playing.any() and len(kept) < most:
            kept.append(playing.copy())
            ended = self._step(env, callback, playing)
            if ended is None:
                return None
            playing[list(ended)] = False
        said = np.stack(kept)
        returns = self.rollout_buffer.steps("rewards")[-len(kept) :].sum(0)
        for row in np.flatnonzero(playing).tolist():  # they count as they stand, in the log too
            episode = {"r": float(returns[row]), "l": int(said[:, row].sum()), "t": 0.0}
            self.ep_info_buffer.append(episode)  # type: ignore[union-attr]
        return said

    def _begin(self, env: VecEnv) -> None:
        """Reset all dialogues, those of a group with the same seed."""
        count = env.num_envs // (self.group_size or 1)
        seeds = np.repeat(self.rng.integers(2**31, size=count), self.group_size or 1)
        # Stable-Baselines3 has no public way to give each row a seed of its own choice.
        env.unwrapped._seeds = list(map(int, seeds))
        self._last_obs = env.reset()  # type: ignore[assignment]
        self._last_episode_starts = np.ones(env.num_envs, bool)
        infos = env.unwrapped.reset_infos
        if self.credit == "situation":
            _check_infos(infos, "anchor", 'credit="situation"')
            self._situations = np.zeros(env.num_envs, np.uint64)
            self._update_situations(infos)
        if self.truth_gain:
            _check_infos(infos, "truth", "truth_gain")
            self._truths = np.array([info["truth"] for info in infos], object)

    def _update_situations(self, infos: list[dict[str, Any]]) -> None:
        """Update the situation that each dialogue is in."""
        for row, info in enumerate(infos):
            if "anchor" in info:
                self._situations[row] = int(info["anchor"], 16)

    def _step_extras(self, infos: list[dict[str, Any]]) -> dict[str, np.ndarray]:
        extras: dict[str, np.ndarray] = {}
        if self.truth_gain:
            extras["truths"] = self._truths
        if self.credit == "situation":
            extras["situations"] = self._situations.copy()
            self._update_situations(infos)
        return extras

    @property
    def _groups(self) -> np.ndarray:
        """(n_envs,) the number of each dialogue's group."""
        return np.arange(self.n_envs) // (self.group_size or self.n_envs)

    def _returns(self, said: np.ndarray) -> np.ndarray:
        """(n_envs,) float64, the sums of the rewards of what was `said` (T, n_envs)."""
        returns: np.ndarray = (self.rollout_buffer.steps("rewards") * said).sum(0, np.float64)
        return returns

    def _rollout(self, said: np.ndarray) -> Rollout:
        """From the rollout in the buffer to sequences with advantages.

        Args:
            said: (n_steps, n_envs) bool, where a token was said that is learned from.
        """
        sequences = self._sequences(said)
        rewards = self.rollout_buffer.steps("rewards") * said
        by_turns = self.truth_gain or self.credit != "episode"
        ends = self._ends(said) if by_turns else np.zeros_like(said)
        if self.truth_gain:
            rewards = rewards + self.truth_gain * self._truth_gains(sequences, said, ends)
        advantages = self._advantages(rewards, said, ends)
        return Rollout(
            sequences,
            sequences.columns["actions"],
            sequences.columns["log_probs"],
            sequences.column(advantages),
            reference_log_probs=self._reference_log_probs(sequences),
        )

    def _advantages(self, rewards: np.ndarray, said: np.ndarray, ends: np.ndarray) -> np.ndarray:
        """(T, n) float32, by the rewards (T, n) of what was said (T, n) in the rollout, of whose
        turns `ends` (T, n) are the ends."""
        groups, how = self._groups, (self.baseline, self.scale)
        whole = group_advantages(rewards.sum(0, np.float64), groups, *how)
        whole = np.broadcast_to(whole, said.shape)
        if self.credit == "episode":
            return whole
        turns = turn_numbers(ends)
        returns = turn_returns(rewards, turns, self.turn_gamma)
        if self.credit == "turn":
            labels = same_turn(len(returns), groups)
            return turn_advantages(returns, turns, said, labels, *how)
        labels = same_situation(self.rollout_buffer.steps("situations"), turns, said, groups)
        among = turn_advantages(returns, turns, said, labels, *how)
        return whole + np.float32(self.situation_weight) * among

    def _ends(self, said: np.ndarray) -> np.ndarray:
        """(T, n) bool: where what was said closes a turn."""
        buffer = self.rollout_buffer
        last = Observed.of(self._last_obs).lengths
        ends: np.ndarray = turn_ends(buffer.steps("lengths"), last, buffer.steps("dones")) & said
        return ends

    def _truth_gains(self, sequences: Sequences, said: np.ndarray, ends: np.ndarray) -> np.ndarray:
        """(T, n): by how much each turn raised the probability of the truth, where it begins."""
        begun = turn_starts(ends, said)
        decisions = np.flatnonzero(begun.reshape(-1)[sequences.steps])
        steps = sequences.steps[decisions]
        texts = self.rollout_buffer.steps("truths").reshape(-1)[steps]
        encode = token_space(self.observation_space).tokenizer.encode
        tokens = {text: np.asarray(encode(text), np.int64) for text in set(texts.tolist())}
        supposed = continued(sequences, decisions, [tokens[text] for text in texts.tolist()])
        if self.policy.masker is not None:
            supposed.add_states(self.policy.masker)
        log_probs = self._all_log_probs(supposed, self.policy.sequence_log_prob)
        values = np.zeros(said.size)
        values[steps] = probabilities(log_probs, supposed.sizes)
        self.logger.record("rollout/truth_prob", float(values[steps].mean()))
        return probability_rises(values.reshape(said.shape), begun)

    # The update

    def loss(self, batch: SequenceBatch) -> tuple[Tensor, dict[str, Tensor]]:
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


def _check_infos(infos: list[dict[str, Any]], key: str, setting: str) -> None:
    """Refuse an env whose infos lack what a setting needs."""
    if not all(info.get(key) for info in infos):
        raise ValueError(
            f"GRPO: {setting} needs infos with `{key}`, got {sorted(infos[0])}; make the env with "
            f"{key}s=True"
        )
