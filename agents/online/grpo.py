"""Policy gradients with the mean return of a group as baseline: GRPO and its kin."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

import numpy as np
import torch
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.type_aliases import GymEnv
from torch import Tensor

from agents.argument_checks import COUNT, FINITE, FRACTION, FROM_0, require
from agents.buffers.sequences import Rollout, SequenceBatch, Sequences
from agents.models.observations import token_space
from agents.online.branches import Branches
from agents.online.credit import (
    BASELINES,
    CREDITS,
    SCALES,
    VALUES,
    Credit,
    credited,
    fitted_values,
)
from agents.online.groups import GroupAlgorithm, GroupOptions
from agents.online.surrogates import (
    LOSS_TYPES,
    RATIO_LEVELS,
    log_ratios,
    mean_weights,
    surrogate,
)
from agents.online.truths import continued, probabilities, probability_rises, turn_starts
from dialgym.errors import one_of, unknown

CREDIT_KWARGS: Mapping[str, Mapping[str, float]] = {
    "anchor": {"weight": 1.0},
    "prefix": {"count": 4},
    "privileged": {"ridge": 0.01, "trace": 1.0},
}
"""Settings of a credit, and their defaults."""
BOUNDS_OF_KWARGS = {"weight": FINITE, "count": COUNT, "ridge": FROM_0, "trace": FRACTION}
FOLDS = 4
"""Groups of dialogues whose values are predicted from the other ones."""


class GRPO(GroupAlgorithm):
    """Group relative policy optimisation (Shao et al. 2024), without a value function.

    An episode's advantage, at all its tokens, is its return less the baseline of its group, over
    the deviation of its group's returns (equation 3 there). The losses and their names are those of
    TRL's `GRPOConfig`; what TRL calls `epsilon`, `beta` and `num_iterations` are `clip_range`, the
    coefficient of `kl` and `n_epochs` here. Deviations are those of the population, where TRL takes
    the sample's.

    `agents.ActGRPO` is the same over dialogue acts. Others of its kind are settings of it:

    - RLOO (Ahmadian et al. 2024, arXiv 2402.14740, equation 8): `baseline="leave-one-out"`,
      `scale_rewards="none"`.
    - REINFORCE++ (Hu et al. 2025, arXiv 2501.03262, equation 9): `baseline="batch"`,
      `scale_rewards="batch"`: (R - mean) / deviation of the whole batch.
    - ReBN (GEM, Liu et al. 2025, arXiv 2510.01051, section 3): the same with `credit="turn"` and
      `gamma` below 1: the returns from all turns of the batch on, to mean 0 and deviation 1.
    - GSPO: `importance_sampling_level="sequence"`, `loss_type="grpo"`.
    - REINFORCE: `group_size=None`, `scale_rewards="none"`.

    `credit` says which part of a return a turn is credited with:

    - "episode": all of it.
    - "turn": the return from the turn on, less that of the group's turns of its number (Zeng et al.
      2025, arXiv 2505.11821).
    - "anchor": the episode's advantage, and `weight` times that of the turn among turns of the
      group which began in the same situation (GiGPO, Feng et al. 2025, arXiv 2505.10978, equation
      8); of an env made with `anchors=True`.
    - "prefix": r + V(after the turn) - V(before it), V the mean return of `count` dialogues that go
      on from a saved prefix (VinePPO, Kazemnejad et al. 2025, arXiv 2410.01679, equations 5 and 6).
      What they say counts as timesteps, and is not learned from.
    - "privileged": the same with a critic that is told the truth, as SWEET-RL's (Zhou et al. 2025,
      arXiv 2503.15478): V by ridge regression of returns on the policy's last hidden states before
      and after the truth is written behind the dialogue, fitted to each rollout anew. A dialogue's
      values come from the other dialogues. `trace` is lambda of GAE from turn to turn: 1 credits
      with the return less V, without bias; 0 with the rise alone, as SWEET-RL does. Of an env made
      with `truths=True`.
    - "exact": the same with the best play's expected return as V, which the task computes: an
      oracle to hold others against. Its mean is Q* - V*, 0 for what the best player says. Of an env
      made with `values=True`.

    The last three are not discounted. "prefix" and "privileged" have no baseline but V, and are not
    scaled; "exact", whose mean is below 0, is credited as "turn" is, each turn with its own rise
    alone. Rewards of "prefix" and "exact" have to be in the unit of those values: no `VecNormalize`
    may scale them.

    With `truth_gain` a turn is also rewarded for the rise of the policy's own probability of naming
    the truth, from the turn's beginning to that of the next: the geometric mean over the tokens
    that name it, none for the last turn (IGPO, Wang et al. 2025, arXiv 2510.14967, section 3.2). It
    needs an env made with `truths=True`, and belongs to `credit="turn"`. What an env knows of the
    truth by itself is paid by its `belief_gain`, and by its `potential`.

    Args:
        policy, env: as of `GroupAlgorithm`.
        loss_type: "grpo", "dr_grpo", "dapo", "bnpo": how losses of tokens are averaged, see
            `agents.online.surrogates.mean_weights`; the greatest length of "dr_grpo" is `n_steps`.
            "cispo": -sg(min(ratio, epsilon_high)) A log pi, averaged as "dapo" does.
        importance_sampling_level: "token", a ratio each; or "sequence", that of the mean log ratio
            of a dialogue, or of its part where a sliding window divides it.
        epsilon_high: how far above 1 a ratio may count, where that is to be another number than
            below (DAPO, Yu et al. 2025, arXiv 2503.14476, section 3.1); None takes `clip_range`.
            For "cispo" the greatest weight of a ratio, by default 5.
        baseline: "mean" of the group, of the group's other members ("leave-one-out"), or of all
            dialogues, or turns, of the rollout ("batch").
        scale_rewards: divide advantages by the deviation of the returns of the "group" (also True),
            of the "batch", or by "none" (also False; Dr.GRPO).
        credit: see above.
        credit_kwargs: {"weight": 1.0} of "anchor", {"count": 4} of "prefix", {"ridge": 0.01,
            "trace": 1.0} of "privileged".
        gamma: the discount from one turn to the next, with the credits "turn" and "anchor".
        truth_gain: reward of a rise from 0 to 1 of the policy's probability of the truth.
        kwargs: further arguments of `GroupAlgorithm`.

    Raises:
        ValueError: a number or name that cannot be, or as of `GroupAlgorithm`.
    """

    def __init__(
        self,
        policy: str | type[ActorCriticPolicy],
        env: GymEnv | str,
        loss_type: str = "dapo",
        importance_sampling_level: str = "token",
        epsilon_high: float | None = None,
        baseline: str = "mean",
        scale_rewards: str | bool = "group",
        credit: str = "episode",
        credit_kwargs: Mapping[str, float] | None = None,
        gamma: float = 1.0,
        truth_gain: float = 0.0,
        **kwargs: Unpack[GroupOptions],
    ) -> None:
        scale = scale_rewards
        if isinstance(scale, bool):
            scale = "group" if scale else "none"
        one_of("loss_type", loss_type, LOSS_TYPES, "GRPO")
        one_of("importance_sampling_level", importance_sampling_level, RATIO_LEVELS, "GRPO")
        one_of("baseline", baseline, BASELINES, "GRPO")
        one_of("scale_rewards", scale, SCALES, "GRPO")
        one_of("credit", credit, CREDITS, "GRPO")
        if credit in VALUES and gamma != 1:
            raise ValueError(
                f"GRPO: credit={credit!r} is of undiscounted values, got gamma={gamma}; leave "
                'gamma at 1, or take credit="turn"'
            )
        self.loss_type, self.importance_sampling_level = loss_type, importance_sampling_level
        self.epsilon_high = epsilon_high
        self.baseline, self.scale_rewards = baseline, scale
        self.credit, self.credit_kwargs = credit, _settings_of(credit, credit_kwargs)
        self.truth_gain = truth_gain
        self._branches: Branches | None = None
        self._values = np.zeros(0)
        super().__init__(policy, env, **kwargs)
        self.gamma = gamma

    def _setup_model(self) -> None:
        super()._setup_model()
        if self.truth_gain and self._keeps_masks:
            raise ValueError(
                f"GRPO: truth_gain={self.truth_gain} asks how likely the policy is to say what it "
                "has not said, and the masks there are not known; expected an env whose masks "
                "follow from its constraint, without masks in observations or by call"
            )
        scaled = self._vec_normalize_env is not None and self._vec_normalize_env.norm_reward
        if self.credit in ("prefix", "exact") and scaled:
            raise ValueError(
                f"GRPO: credit={self.credit!r} adds rewards to values in their own unit, got an "
                "env that scales rewards; give VecNormalize norm_reward=False"
            )
        by_itself = self.baseline == "batch" and self.credit in ("turn", "exact")
        if self.env is not None and self.n_envs < 2 and self.credit != "prefix" and not by_itself:
            raise ValueError(
                f"GRPO: baseline={self.baseline!r} with credit={self.credit!r} compares dialogues, "
                "got an env of 1 dialogue; expected at least 2"
            )

    # The rollout

    def _begun(self, infos: list[dict[str, Any]], chosen: np.ndarray) -> None:
        if self.credit == "anchor":
            _check_infos(infos, "anchor", 'credit="anchor"')
            self._situations = np.zeros(len(infos), np.uint64)
            self._update(self._situations, "anchor", infos)
        if self.credit == "exact":
            _check_infos(infos, "value", 'credit="exact"')
            values = np.zeros(len(infos))
            self._update(values, "value", infos)
            before: np.ndarray = self._values if len(self.rollout_buffer) else values
            self._values = np.where(chosen, values, before)
        if self.credit == "prefix":
            if self._branches is None:
                self._branches = Branches(self.env)
            rows = np.flatnonzero(chosen).tolist()
            self._branches.forget(rows)
            self._branches.note(len(self.rollout_buffer), rows)
        if self._needs_truths:
            setting = "truth_gain" if self.truth_gain else 'credit="privileged"'
            _check_infos(infos, "truth", setting)
            self._truths = np.array([info["truth"] for info in infos], object)

    @property
    def _needs_truths(self) -> bool:
        return bool(self.truth_gain) or self.credit == "privileged"

    def _update(self, known: np.ndarray, key: str, infos: list[dict[str, Any]]) -> None:
        """Take the name or the value of the situation that each dialogue is in from its info."""
        for row, info in enumerate(infos):
            if key in info:
                known[row] = int(info[key], 16) if key == "anchor" else info[key]

    def _step_extras(self, infos: list[dict[str, Any]]) -> dict[str, np.ndarray]:
        extras: dict[str, np.ndarray] = {}
        if self._needs_truths:
            extras["truths"] = self._truths
        if self.credit == "anchor":
            extras["situations"] = self._situations.copy()
            self._update(self._situations, "anchor", infos)
        if self.credit == "exact":
            extras["state_values"] = self._values.copy()
            self._update(self._values, "value", infos)
        if self._branches is not None:
            over = "terminal_observation"
            going = [i for i, info in enumerate(infos) if info.get("turn") and over not in info]
            self._branches.note(len(self.rollout_buffer) + 1, going)
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
        advantages = self._advantages(sequences, rewards, said, ends)
        return Rollout(
            sequences,
            sequences.columns["actions"],
            sequences.columns["log_probs"],
            sequences.column(advantages),
            reference_log_probs=self._reference_log_probs(sequences),
        )

    def _advantages(
        self, sequences: Sequences, rewards: np.ndarray, said: np.ndarray, ends: np.ndarray
    ) -> np.ndarray:
        """(T, n) float32, by the rewards (T, n) of what was said (T, n) in the rollout, of whose
        turns `ends` (T, n) are the ends."""
        known = left = None
        if self.credit == "privileged":
            known = self._privileged_values(sequences, rewards, said, ends)
        elif self.credit in VALUES:
            known, left = self._state_values(said)
        elif self.credit == "anchor":
            known = self.rollout_buffer.steps("situations")
        how = self.credit, self.baseline, self.scale_rewards, self.gamma
        own = (self.credit_kwargs.get(name, 0.0) for name in ("weight", "trace"))
        rest = self._groups, known, left, self.processes.sums
        return credited(Credit(*how, *own), rewards, said, ends, *rest)

    def _state_values(self, said: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Values (T, n) of where turns began, and (n,) of where dialogues stand; 0 at their end."""
        ended = (self.rollout_buffer.steps("dones") & said).any(0)
        if self._branches is None:
            return self.rollout_buffer.steps("state_values"), np.where(ended, 0.0, self._values)
        branches, self._branches = self._branches, None
        count = int(self.credit_kwargs["count"])
        found = branches.values(self, said.shape, count, self.rng)  # type: ignore[arg-type]
        [steps] = self.processes.sums(float(found.steps))
        self.num_timesteps += int(steps)
        after = len(said) - said[::-1].argmax(0)
        left = found.values[after, np.arange(said.shape[1])]
        return found.values[:-1], np.where(ended, 0.0, left)

    def _truth_gains(self, sequences: Sequences, said: np.ndarray, ends: np.ndarray) -> np.ndarray:
        """(T, n): by how much each turn raised the probability of the truth, where it begins."""
        begun = turn_starts(ends, said)
        steps, tokens = self._truth_tokens(sequences, begun)
        supposed = continued(sequences, *tokens)
        if self.policy.masker is not None:
            supposed.add_states(self.policy.masker)
        log_probs = self._all_log_probs(supposed, self.policy.sequence_log_prob)
        values = np.zeros(said.size)
        values[steps] = probabilities(log_probs, supposed.sizes)
        self.logger.record("rollout/truth_prob", float(values[steps].mean()))
        return probability_rises(values.reshape(said.shape), begun)

    def _truth_tokens(
        self, sequences: Sequences, begun: np.ndarray
    ) -> tuple[np.ndarray, tuple[np.ndarray, list[np.ndarray]]]:
        """Flat steps (m,), decisions (m,) and tokens of the truths, of turns that begin (T, n)."""
        decisions = np.flatnonzero(begun.reshape(-1)[sequences.steps])
        steps = sequences.steps[decisions]
        texts = self.rollout_buffer.steps("truths").reshape(-1)[steps].tolist()
        encode = token_space(self.observation_space).tokenizer.encode
        tokens = {text: np.asarray(encode(text), np.int64) for text in set(texts)}
        return steps, (decisions, [tokens[text] for text in texts])

    def _privileged_values(
        self, sequences: Sequences, rewards: np.ndarray, said: np.ndarray, ends: np.ndarray
    ) -> np.ndarray:
        """(T, n): returns to come where turns began, predicted by who is told the truth."""
        steps, (decisions, truths) = self._truth_tokens(sequences, turn_starts(ends, said))
        # A last token that nobody reads: hidden states are those before each token.
        answers = [np.append(truth, truth[-1]) for truth in truths]
        supposed = continued(sequences, decisions, answers)
        hidden = self._hidden_states(supposed)
        both = np.hstack([hidden[supposed.first[:-1]], hidden[supposed.first[1:] - 1]])
        to_come = rewards[::-1].cumsum(0, np.float64)[::-1].reshape(-1)[steps]
        folds = steps % self.n_envs % FOLDS
        values = np.zeros(said.size)
        values[steps] = found = fitted_values(both, to_come, folds, self.credit_kwargs["ridge"])
        variance = float(to_come.var())
        if variance:
            explained = 1 - float((to_come - found).var()) / variance
            self.logger.record("rollout/explained_by_truth", explained)
        return values.reshape(said.shape)

    @torch.no_grad()
    def _hidden_states(self, sequences: Sequences) -> np.ndarray:
        """(N, F) float64, the policy's last ones before each decision, in order."""
        found = np.zeros((len(sequences), 0))
        for part in sequences.parts(np.arange(len(sequences.sizes)), self.updater.most_tokens):
            bias = self.policy._bias(self.policy.features, part.features)
            with self.updater.precision():
                hidden = self.policy.backbone(part.tokens, part.at, *bias).double().cpu().numpy()
            if not found.size:
                found = np.zeros((len(sequences), hidden.shape[1]))
            found[part.rows.cpu().numpy()] = hidden
        return found

    # The update

    def policy_loss(
        self, batch: SequenceBatch, log_prob: Tensor
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """The surrogate."""
        log_ratio = log_ratios(batch, log_prob, self.importance_sampling_level)
        low = self.clip_range(self._current_progress_remaining)
        return surrogate(batch, log_prob, log_ratio, self.loss_type, low, self.epsilon_high)

    def _token_weights(self, chosen: np.ndarray) -> Tensor | None:
        if self.loss_type in ("dapo", "cispo"):
            return None
        sequences = self.rollout.sequences
        rows = sequences.decisions(chosen).cpu().numpy()
        of_row = sequences.steps % self.n_envs  # a dialogue, which a window may have divided
        lengths = np.bincount(of_row, minlength=self.n_envs)[of_row[rows]]
        decisions, dialogues = self.processes.sums(float(len(rows)), float((1 / lengths).sum()))
        totals = decisions, dialogues, float(len(rows) * self.processes.count)
        column = np.zeros(len(sequences), np.float32)
        column[rows] = mean_weights(self.loss_type, lengths, totals, self.n_steps)
        return torch.from_numpy(column).to(self.device)

    def _excluded_save_params(self) -> list[str]:
        return [*super()._excluded_save_params(), "_branches"]


def _settings_of(credit: str, given: Mapping[str, float] | None) -> dict[str, float]:
    """The settings of a credit, with its defaults.

    Raises:
        ValueError: it has none of that name, or the number cannot be.
    """
    known = CREDIT_KWARGS.get(credit, {})
    for name, value in (given or {}).items():
        if name not in known:
            raise unknown("setting", name, known, f"credit_kwargs of GRPO, credit={credit!r}")
        require("GRPO", BOUNDS_OF_KWARGS[name], **{name: value})
    return {**known, **(given or {})}


def _check_infos(infos: list[dict[str, Any]], key: str, setting: str) -> None:
    """Refuse an env whose infos lack what a setting needs."""
    if not all(key in info and info[key] != "" for info in infos):
        raise ValueError(
            f"GRPO: {setting} needs infos with `{key}`, got {sorted(infos[0])}; make the env with "
            f"{key}s=True"
        )
