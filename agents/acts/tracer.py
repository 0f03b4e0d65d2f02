"""TRACER: trust region actor-critic with experience replay."""

from __future__ import annotations

from typing import Any, Unpack

from stable_baselines3.common.policies import BasePolicy

from agents.acts.a2c import A2C, A2COptions
from agents.acts.trust_region import TrustRegion


class TRACER(A2C):
    """`A2C` on dialogues drawn from memory, within a trust region around a slow average.

    Source: Su et al. (2017), arXiv 1707.00130. PyDial's computes importance weights and then
    overwrites them with ones; here they are used, and targets are V-trace's, whose traces they cut.

    Args:
        policy, env: as of `ActorCritic`.
        batch_size, learning_starts: as of `ActorCritic`.
        trust_delta: how far KL(average || policy) may rise in a step, at each decision.
        average_tau: how much of the policy goes into its average at each step.
        kwargs: further arguments of `A2C`.
    """

    def __init__(
        self,
        policy: str | type[BasePolicy],
        env: Any,
        *,
        batch_size: int | None = 32,
        learning_starts: int = 200,
        trust_delta: float = 0.01,
        average_tau: float = 0.02,
        **kwargs: Unpack[A2COptions],
    ) -> None:
        self.trust_delta, self.average_tau = trust_delta, average_tau
        super().__init__(
            policy, env, batch_size=batch_size, learning_starts=learning_starts, **kwargs
        )

    def _setup_model(self) -> None:
        super()._setup_model()
        self.trust_region = TrustRegion(self.policy, self.trust_delta, self.average_tau)
