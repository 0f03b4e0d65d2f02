"""REFUEL (Gao et al. 2024): regression of the relative future of two replies to one prefix."""

from __future__ import annotations

from copy import copy
from typing import Any, Unpack

import numpy as np
import torch
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.type_aliases import GymEnv
from stable_baselines3.common.vec_env import VecEnv
from torch import Tensor

from agents.buffers.sequences import Rollout, SequenceBatch, minibatches, sums_by_pair
from agents.buffers.stored import scattered
from agents.models.observations import has_masks
from agents.online.branches import Branches
from agents.online.groups import GroupAlgorithm
from agents.online.on_policy import SequenceOptions
from agents.online.reference import k3


class REFUEL(GroupAlgorithm):
    """Regressing the relative future (Gao et al. 2024, arXiv 2410.04612, equation 4).

    Each iteration holds a dialogue in every row, chooses one of its turns, each as likely, and goes
    on from where that turn began a second time: two turns y and y' after one prefix x of the
    policy's own, and what the dialogues earn from there on, R and R'. The loss of the pair is

        ((log pi(y | x) / pi_old(y | x) - log pi(y' | x) / pi_old(y' | x)) / eta - (R - R'))^2

    with pi_old the policy that said both. Its minimum is pi_old exp(eta Q) / Z: no critic and no
    baseline is needed, since Z is the same for both. What is hidden is the same in both dialogues,
    what the other party draws is not. Only the two turns are learned from; what follows them tells
    R, and counts as timesteps. The pair weighs as many as the first dialogue had turns: without, a
    turn that a short dialogue followed would be chosen more often than it is taken, and its R be
    that of the short ones.

    Args:
        policy: as of `GroupAlgorithm`.
        env: made by `dialgym.sb3_vec_env` in this process, whose dialogues can be saved and gone on
            from; masks by call or by the env's constraint, not in observations.
        n_epochs: passes over a rollout.
        eta: how far an iteration goes: by how many nats the better of two turns is to gain on the
            other for each point that its future is better by.
        kwargs: further arguments of `GroupAlgorithm`, but for `group_size` and `resample`. `kl` is
            a term of the loss, the sum over the tokens of a pair.

    Raises:
        ValueError: a server, a number that cannot be, another kind of env, or as of
            `GroupAlgorithm`.
    """

    def __init__(
        self,
        policy: str | type[ActorCriticPolicy],
        env: GymEnv | str,
        n_epochs: int = 4,
        eta: float = 1.0,
        **kwargs: Unpack[SequenceOptions],
    ) -> None:
        self.eta = eta
        self._branches: Branches | None = None
        super().__init__(policy, env, n_epochs=n_epochs, group_size=None, **kwargs)

    def _setup_model(self) -> None:
        super()._setup_model()
        if self.processes.sharded:
            raise ValueError(
                "REFUEL: dialogues in pairs cannot be learned from with shared weights "
                "(accelerate, distributed_type: FSDP or DEEPSPEED); use MULTI_GPU, or one process"
            )
        if self.served is not None:
            raise ValueError(
                "REFUEL: a server's tokens have importance weights, and its loss has none; leave "
                "server out"
            )
        if has_masks(self.observation_space):
            raise ValueError(
                "REFUEL: dialogues that are gone on from show no masks in their observations; "
                "expected an env without, whose masks are asked for by call (env_masks=True)"
            )

    def _excluded_save_params(self) -> list[str]:
        return [*super()._excluded_save_params(), "_branches", "_turns", "_chosen", "_second"]

    # The rollout

    def _begun(self, infos: list[dict[str, Any]], chosen: np.ndarray) -> None:
        self._branches = Branches(self.env)
        self._turns, self._chosen = np.zeros((2, len(infos)), np.int64)
        self._at_a_turn(len(self.rollout_buffer), np.arange(len(infos)))

    def _step_extras(self, infos: list[dict[str, Any]]) -> dict[str, np.ndarray]:
        if self._branches is not None and len(self.rollout_buffer) + 1 < self.n_steps:
            over = "terminal_observation"
            going = [i for i, info in enumerate(infos) if info.get("turn") and over not in info]
            self._at_a_turn(len(self.rollout_buffer) + 1, np.array(going, np.int64))
        return {}

    def _at_a_turn(self, step: int, rows: np.ndarray) -> None:
        """Choose the turns that begin in the dialogues `rows`, each in place of earlier ones.

        The k-th with probability 1 / k, by which in the end each is as likely (Vitter 1985).
        """
        assert self._branches is not None
        self._turns[rows] += 1
        rows = rows[self.rng.random(len(rows)) * self._turns[rows] < 1]
        self._chosen[rows] = step
        self._branches.note(step, rows)

    def _play_again(self, env: VecEnv, most: int) -> np.ndarray:
        """Go on from where the chosen turns began, once more, for as many tokens as were left.

        Neither callbacks nor the log's returns count these dialogues, which begin in the middle.
        """
        branches, self._branches = self._branches, None
        assert branches is not None
        self._second = len(self.rollout_buffer)
        saved = [branches.begun[step, row] for row, step in enumerate(self._chosen.tolist())]
        seeds = self.rng.integers(2**31, size=len(saved)).tolist()
        self._last_obs = branches.batch.restore_state(saved, seeds=seeds)
        self._last_episode_starts = np.ones(len(saved), bool)
        logged = copy(self.ep_info_buffer), copy(self.ep_success_buffer)
        unseen = Unseen()
        unseen.init_callback(self)
        played = self._play(env, unseen, np.ones(len(saved), bool), most - self._chosen)
        self.ep_info_buffer, self.ep_success_buffer = logged
        assert played is not None
        return played

    def _rollout(self, said: np.ndarray) -> Rollout:
        rewards, ends = self.rollout_buffer.steps("rewards"), self._ends(said)
        step = np.arange(len(said))[:, None]
        begun = self._chosen, np.full_like(self._chosen, self._second)
        plays = said & (step < self._second), said & (step >= self._second)
        turns = [one_turn(*both, ends) for both in zip(plays, begun, strict=True)]
        values = [
            (rewards * play * (step >= since)).sum(0, np.float64)
            for play, since in zip(plays, begun, strict=True)
        ]
        gaps = (values[0] - values[1]).astype(np.float32)
        futures = np.where(turns[0], *values).astype(np.float32)
        self.logger.record("rollout/future_gap", float(np.abs(gaps).mean()))
        sequences = self._sequences(turns[0] | turns[1])
        return Rollout(
            sequences,
            sequences.columns["actions"],
            sequences.columns["log_probs"],
            sequences.column(np.where(turns[0], gaps, -gaps)),
            values=sequences.column(futures),
            reference_log_probs=self._reference_log_probs(sequences),
        )

    # The update

    def _minibatches(self, count: int) -> list[np.ndarray]:
        """Minibatches (p, 2) of sequences, those of a pair side by side.

        A turn that a sliding window has divided into several sequences is left out.
        """
        sequences = self.rollout.sequences
        owner = sequences.steps[sequences.first[:-1]] % self.n_envs
        whole = np.bincount(owner, minlength=self.n_envs) == 2
        order = np.argsort(owner, kind="stable")
        pairs = order[whole[owner[order]]].reshape(-1, 2)
        sizes = sequences.sizes[pairs].sum(1)
        return [pairs[chosen] for chosen in minibatches(sizes, count, self.rng)]

    def _token_weights(self, chosen: np.ndarray) -> Tensor:
        """Weights (N,) by which the mean over the decisions of pairs (p, 2) is one over turns.

        Of a dialogue of K turns one is chosen, and stands for K.
        """
        sequences = self.rollout.sequences
        turns = self._turns[sequences.steps % self.n_envs]
        size = float(sequences.sizes[chosen].sum())
        stood_for = float(turns[sequences.first[chosen[:, 0]]].sum())
        decisions, total = self.processes.sums(size, stood_for)
        weights = torch.from_numpy(turns * (decisions / max(total, 1))).float()
        return weights.to(self.device)

    def policy_loss(
        self, batch: SequenceBatch, log_prob: Tensor
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """The squared error of each pair, at its first decision."""
        assert batch.values is not None
        rows, count = batch.at // batch.tokens.shape[1], len(batch.tokens)
        first, second = sums_by_pair(log_prob - batch.log_probs, rows, count)
        futures = batch.values.new_zeros(count).index_copy(0, rows, batch.values).view(-1, 2)
        errors = ((first - second) / self.eta - (futures[:, 0] - futures[:, 1])).square()
        begins = (torch.diff(rows, prepend=rows[:1] - 1) != 0) & (rows % 2 == 0)
        loss = scattered(errors, begins)
        weights = 1.0 if batch.weights is None else batch.weights
        approx_kl = k3(log_prob - batch.log_probs).detach()
        return loss, {"approx_kl": approx_kl, "regression_loss": (loss * weights).detach()}


class Unseen(BaseCallback):
    """A callback that sees nothing, in the place of one that is to see other dialogues alone."""

    def _on_step(self) -> bool:
        return True


def one_turn(said: np.ndarray, begun: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """(T, n) bool: the steps of the turns that begin at the steps `begun` (n,).

    Args:
        said: (T, n) bool, where the dialogues were played.
        begun: (n,) int.
        ends: (T, n) bool, of decisions that close a turn.
    """
    after = said & (np.arange(len(said))[:, None] >= begun)
    closing = ends & after
    found: np.ndarray = after & (closing.cumsum(0) - closing == 0)
    return found
