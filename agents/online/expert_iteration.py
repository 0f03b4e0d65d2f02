"""Expert iteration: the policy's own best dialogues, cloned."""

from __future__ import annotations

from typing import Unpack

import numpy as np
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.type_aliases import GymEnv
from torch import Tensor

from agents.argument_checks import Bounds, require
from agents.buffers.sequences import Rollout, SequenceBatch
from agents.online.credit import all_equal
from agents.online.groups import GroupAlgorithm, GroupOptions
from agents.online.reference import k3


class ExpertIteration(GroupAlgorithm):
    """Cloning of the best dialogues that the policy has just held (Anthony et al. 2017).

    Of each group, whose dialogues begin alike, the `top` share of greatest return is kept, and the
    likelihood of what was said in it maximised: the expert is the choice among several dialogues.
    With one dialogue a group kept it is RAFT (Dong et al. 2023, arXiv 2304.06767, algorithm 1);
    ReST-EM (Singh et al. 2023, arXiv 2312.06585, algorithm 1) begins each improvement with the
    first policy, this one goes on from the last. The loss is -mean log pi(a | s), with the terms of
    divergence and entropy of `GroupAlgorithm`.

    Args:
        policy, env: as of `GroupAlgorithm`.
        top: share of each group that is kept, at least one dialogue; among equal returns those of
            lower rows, which says nothing of them.
        equal_groups: keep dialogues of groups whose returns are all equal, too: they hold what the
            policy can do already.
        kwargs: further arguments of `GroupAlgorithm`.

    Raises:
        ValueError: `top` is not above 0 and at most 1, or as of `GroupAlgorithm`.
    """

    def __init__(
        self,
        policy: str | type[ActorCriticPolicy],
        env: GymEnv | str,
        top: float = 0.25,
        equal_groups: bool = True,
        **kwargs: Unpack[GroupOptions],
    ) -> None:
        require("ExpertIteration", Bounds(most=1.0, above=True), top=top)
        self.top, self.equal_groups = top, equal_groups
        super().__init__(policy, env, **kwargs)

    def _rollout(self, said: np.ndarray) -> Rollout:
        returns = self._returns(said)
        kept = best_of_groups(returns, self._groups, self.top)
        if not self.equal_groups:
            differ = ~all_equal(returns, self._groups)
            kept = kept & differ if differ.any() else kept
        self.logger.record("rollout/kept_return", float(returns[kept].mean()))
        sequences = self._sequences(said & kept)
        columns = sequences.columns
        return Rollout(
            sequences,
            columns["actions"],
            columns["log_probs"],
            columns["log_probs"].new_ones(len(sequences)),
            reference_log_probs=self._reference_log_probs(sequences),
        )

    def policy_loss(
        self, batch: SequenceBatch, log_prob: Tensor
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """-log pi of what the policy has chosen."""
        return -batch.advantages * log_prob, {"approx_kl": k3(log_prob - batch.log_probs).detach()}


def best_of_groups(returns: np.ndarray, groups: np.ndarray, top: float) -> np.ndarray:
    """The best dialogues of each group, (m,) bool.

    Args:
        returns: (m,).
        groups: (m,), any labels.
        top: share of each group that is kept, at least one.
    """
    kept = np.zeros(len(returns), bool)
    for group in np.unique(groups):
        rows = np.flatnonzero(groups == group)
        order = rows[np.argsort(-returns[rows], kind="stable")]
        kept[order[: max(1, round(top * len(rows)))]] = True
    return kept
