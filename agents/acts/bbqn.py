"""BBQN: Q-learning with Gaussian weights by Bayes by backprop, and Thompson sampling."""

from __future__ import annotations

import math
from typing import Any, Unpack

from stable_baselines3.common.policies import BasePolicy
from torch import Tensor

from agents.acts.dqn import DQN, DQNOptions
from agents.argument_checks import POSITIVE, require
from dialgym.errors import one_of

DIVERGENCES = ("kl", "alpha")


class BBQN(DQN):
    """Bayes-by-backprop Q-networks: Lipton et al. (2018), with weights of Blundell et al. (2015).

    q(w) = N(mu, sigma^2) minimises

        KL(q || prior) / N + mean_n E_q[ (y_n - Q_w(s_n, a_n))^2 ] / (2 v)

    of N transitions in memory, here times v, the variance of the noise of targets (`kl_coef`). With
    `divergence="alpha"` the expectation becomes -1/alpha log E_q exp(-alpha (y - Q)^2 / 2 v), the
    black-box alpha divergence (Hernandez-Lobato et al., 2016), which is the former as alpha goes
    to 0 and, at 1, the likelihood of the mixture. Targets are those of the mean weights. Each act
    is the best by weights that are drawn for it; at test, where PyDial's original draws once, by
    the mean of `test_samples` draws of Q.

    Args:
        policy, env: as of `DQN`.
        divergence: "kl" or "alpha".
        alpha: of that divergence, from 0 to 1.
        n_samples: draws of the weights that an expectation is taken over.
        kl_coef: v.
        exploration_initial_eps, exploration_final_eps: as of `DQN`.
        policy_kwargs: as of `QPolicy`; "bayes" weights and 10 `test_samples` unless it says more.
        kwargs: further arguments of `DQN`.

    Raises:
        ValueError: as of `DQN`, or a number that cannot be.
    """

    def __init__(
        self,
        policy: str | type[BasePolicy],
        env: Any,
        *,
        divergence: str = "kl",
        alpha: float = 0.5,
        n_samples: int = 1,
        exploration_initial_eps: float = 0.0,
        exploration_final_eps: float = 0.0,
        **kwargs: Unpack[DQNOptions],
    ) -> None:
        one_of("divergence", divergence, DIVERGENCES, "BBQN")
        if divergence == "alpha":
            require("BBQN with divergence='alpha'", POSITIVE, kl_coef=kwargs.get("kl_coef", 1.0))
        self.divergence, self.alpha, self.n_samples = divergence, alpha, n_samples
        given = kwargs.get("policy_kwargs") or {}
        kwargs["policy_kwargs"] = {"uncertainty": "bayes", "test_samples": 10, **given}
        super().__init__(
            policy,
            env,
            exploration_initial_eps=exploration_initial_eps,
            exploration_final_eps=exploration_final_eps,
            **kwargs,
        )

    def estimates(self, observations: Tensor) -> Tensor:
        """(n_samples, n, A): Q by weights that are drawn, for each observation again."""
        return self.policy.q_net.q_values(observations, self.n_samples)

    def misfit(self, errors: Tensor, heads: Tensor) -> Tensor:
        """(n,): v times the expected negative log-likelihood of targets, or its alpha form."""
        squares = errors.square() / 2
        if self.divergence == "kl":
            return squares.mean(0)
        scale = self.alpha / self.kl_coef
        mixed = (-scale * squares).logsumexp(0) - math.log(len(errors))
        return -mixed / scale
