"""Conservative Q-learning (Kumar et al. 2020) of single decisions."""

from __future__ import annotations

from typing import Any, Unpack

import torch
from stable_baselines3.common.policies import BasePolicy
from torch import Tensor

from agents.buffers.stored import DecisionBatch
from agents.models.heads import chosen
from agents.offline.ilql import ILQL, QOptions


class CQL(ILQL):
    """Conservative Q-learning of tokens or acts: lowers Q of those that were not chosen.

    Q regresses to r + gamma max_a min target Q(s', a), over what may be said there; the
    conservative regulariser (`agents.offline.losses.conservative_loss`) keeps that maximum near
    what was said. V is the mean of Q, for speaking by advantages.

    With `calibrated` it is Cal-QL (Nakamoto et al. 2023, arXiv 2303.05479): the regulariser presses
    no Q below the return that the data had from there on, the value of who was logged, by samples.
    So Q keeps the scale of returns, and what learns on by playing need not first unlearn that all
    unsaid things are bad. The returns of dialogues that a limit cut off end there.

    Args:
        cql_weight: of the regulariser.
        calibrated: see above.
        kwargs: as of `ILQL`.
    """

    def __init__(
        self,
        policy: str | type[BasePolicy],
        env: Any,
        dataset: Any = None,
        expectile: float = 0.5,
        cql_weight: float = 0.1,
        calibrated: bool = False,
        **kwargs: Unpack[QOptions],
    ) -> None:
        self.calibrated = calibrated
        super().__init__(policy, env, dataset, expectile=expectile, cql_weight=cql_weight, **kwargs)

    def cql_floor(self, batch: DecisionBatch) -> Tensor | None:
        return batch.returns if self.calibrated else None

    def target_values(
        self, batch: DecisionBatch, target_hidden: Tensor
    ) -> tuple[Tensor, Tensor | None]:
        """Min target Q (n,) of the chosen actions, and max_a min target Q(s, a) (n,)."""
        target_q = self.policy.target_q(target_hidden)
        said = chosen(target_q, batch.actions)
        if batch.allowed is not None:
            target_q = target_q.masked_fill(~batch.allowed, -torch.inf)
        return said, target_q.amax(1)
