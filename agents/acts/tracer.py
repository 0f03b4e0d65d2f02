"""TRACER: trust region actor-critic with experience replay."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from agents.acts.a2c import A2C
from agents.acts.trust_region import TrustRegion
from agents.buffers.dialogues import DialogueSample


class TRACER(A2C):
    """`A2C` on dialogues drawn from memory, within a trust region around a slow average.

    Source: Su et al. (2017), arXiv 1707.00130. PyDial's computes importance weights and then
    overwrites them with ones; here they are used, and targets are V-trace's, whose traces they cut.

    Args:
        args: as of `A2C`.
        batch_size, learning_starts: as there.
        trust_delta: how far KL(average || policy) may rise in a step, at each decision.
        average_tau: how much of the policy goes into its average at each step.
        kwargs: as of `A2C`.
    """

    def __init__(
        self,
        *args: Any,
        batch_size: int | None = 32,
        learning_starts: int = 200,
        trust_delta: float = 0.01,
        average_tau: float = 0.02,
        **kwargs: Any,
    ) -> None:
        self.trust_delta, self.average_tau = trust_delta, average_tau
        super().__init__(*args, batch_size=batch_size, learning_starts=learning_starts, **kwargs)

    def _setup_model(self) -> None:
        super()._setup_model()
        self.trust_region = TrustRegion(self.policy, self.trust_delta, self.average_tau)

    def update(self, batch: DialogueSample) -> dict[str, Tensor]:
        if self._n_updates == 0:  # the policy may have been given other weights since it was made
            self.trust_region.begin(self.policy)
        metrics = super().update(batch)
        self.trust_region.follow(self.policy)
        return metrics

    def policy_loss(self, batch: DialogueSample, logits: Tensor, gain: Tensor) -> Tensor:
        return self.trust_region.loss(batch, logits, gain)

    def _get_torch_save_params(self) -> tuple[list[str], list[str]]:
        networks, variables = super()._get_torch_save_params()
        return [*networks, "trust_region"], variables
