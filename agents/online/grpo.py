"""Policy gradients with the mean return of a group as baseline: GRPO and its kin."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.type_aliases import GymEnv
from torch import Tensor

from agents.buffers.sequences import Rollout, SequenceBatch, Sequences
from agents.models.observations import Observed, token_space
from agents.online.credit import (
    BASELINES,
    CREDITS,
    group_advantages,
    same_situation,
    same_turn,
    turn_advantages,
    turn_numbers,
)
from agents.online.groups import GroupAlgorithm, GroupOptions
from agents.online.on_policy import SURROGATES, turn_ends
from agents.online.truths import continued, probabilities, probability_rises, turn_starts
from agents.returns import turn_returns
from dialgym.errors import one_of


class GRPO(GroupAlgorithm):
    """Group relative policy optimisation (Shao et al. 2024), without a value function.

    An episode's advantage, at all its tokens, is its return less the baseline of its group. Losses
    are averaged over tokens, so that long replies are not favoured (Yu et al. 2025, section 3.3).

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

    Args:
        policy, env: as of `GroupAlgorithm`.
        clip_range_high: above 1, where it is to be another than below (DAPO, Yu et al. 2025, arXiv
            2503.14476, section 3.1); None takes `clip_range`.
        surrogate: "token", the clipped ratio of each token; "sequence", that of a dialogue's mean
            log ratio (GSPO); "weight", the clipped ratio as a weight (CISPO). See `surrogates`.
        baseline: "mean" of the group, or of the group's other members ("leave-one-out").
        scale: divide advantages by the deviation of the group's returns.
        credit: "episode", "turn" or "situation".
        gamma: the discount from one turn to the next, where turns are credited.
        situation_weight: of the advantages among equal situations.
        truth_gain: reward of a rise from 0 to 1 of the policy's probability of the truth.
        kwargs: further arguments of `GroupAlgorithm`.

    Raises:
        ValueError: a number or name that cannot be, or as of `GroupAlgorithm`.
    """

    def __init__(
        self,
        policy: str | type[ActorCriticPolicy],
        env: GymEnv | str,
        clip_range_high: float | None = None,
        surrogate: str = "token",
        baseline: str = "mean",
        scale: bool = True,
        credit: str = "episode",
        gamma: float = 1.0,
        situation_weight: float = 1.0,
        truth_gain: float = 0.0,
        **kwargs: Unpack[GroupOptions],
    ) -> None:
        one_of("baseline", baseline, BASELINES, "GRPO")
        one_of("credit", credit, CREDITS, "GRPO")
        one_of("surrogate", surrogate, SURROGATES, "GRPO")
        self.credit, self.turn_gamma, self.situation_weight = credit, gamma, situation_weight
        self.clip_range_high = clip_range_high
        self.surrogate = surrogate
        self.truth_gain = truth_gain
        self.baseline = baseline
        self.scale = scale
        super().__init__(policy, env, **kwargs)

    def _setup_model(self) -> None:
        super()._setup_model()
        if self.truth_gain and self._keeps_masks:
            raise ValueError(
                f"GRPO: truth_gain={self.truth_gain} asks how likely the policy is to say what it "
                "has not said, and the masks there are not known; expected an env whose masks "
                "follow from its constraint, without masks in observations or by call"
            )

    # The rollout

    def _begun(self, infos: list[dict[str, Any]]) -> None:
        if self.credit == "situation":
            _check_infos(infos, "anchor", 'credit="situation"')
            self._situations = np.zeros(len(infos), np.uint64)
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

    def policy_loss(
        self, batch: SequenceBatch, log_prob: Tensor
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """The surrogate."""
        low = self.clip_range(self._current_progress_remaining)
        high = low if self.clip_range_high is None else self.clip_range_high
        return SURROGATES[self.surrogate](batch, log_prob, (low, high))


def _check_infos(infos: list[dict[str, Any]], key: str, setting: str) -> None:
    """Refuse an env whose infos lack what a setting needs."""
    if not all(info.get(key) for info in infos):
        raise ValueError(
            f"GRPO: {setting} needs infos with `{key}`, got {sorted(infos[0])}; make the env with "
            f"{key}s=True"
        )
