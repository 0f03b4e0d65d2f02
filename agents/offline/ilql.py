"""Implicit language Q-learning (Snell et al. 2022), and single-step RL as its special case."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from stable_baselines3.common.policies import BasePolicy
from torch import Tensor

from agents.buffers.sequences import Part, Sequences
from agents.offline.losses import bellman_target, conservative, expectile, following
from agents.offline.values import ValueAlgorithm
from agents.policies.gpt import chosen, token_log_probs
from agents.updater import Loss
from dialgym.errors import one_of


class ILQL(ValueAlgorithm):
    """Q-learning of single tokens that never asks what an unsaid token would be worth.

    V(s) is an upper expectile of the targets' Q(s, a) over what was said, and both Q regress to
    r + gamma V(s'); a cloned policy is learned beside, and speech follows log pi + beta (min Q - V)
    (`Decoding`). Where the published code errs this one does not: losses are means over the
    learner's tokens alone, rewards are never truncated to whole numbers, and nothing is read after
    a dialogue's end.

    Args:
        policy: `agents.ValueGPTPolicy`, or "GPTPolicy", which names it here. Of its arguments,
            `decoding={"beta": ...}` says how much advantages count in speech; 8 unless given.
        env, dataset: as of `OfflineAlgorithm`.
        expectile: tau of the value loss; 0.5 is the mean, near 1 the best of what was said.
        q_weight, v_weight: of the Q and the value loss.
        cql_weight: of the conservative regulariser.
        cql_temperature: of the softmax over Q in it.
        policy_weight: of the cloning loss.
        awac_beta: the cloning loss of each token weighs exp(awac_beta (min Q - V)), at most
            `awac_clip` (AWAC; Nair et al. 2020); 0 clones all alike.
        awac_clip: greatest such weight.
        kwargs: further arguments of `ValueAlgorithm`.

    Raises:
        ValueError: as of `ValueAlgorithm`.
    """

    speech: ClassVar[dict[str, float]] = {"beta": 8.0}

    def __init__(
        self,
        policy: str | type[BasePolicy],
        env: Any,
        dataset: Any = None,
        expectile: float = 0.7,
        q_weight: float = 1.0,
        v_weight: float = 1.0,
        cql_weight: float = 1e-4,
        cql_temperature: float = 1.0,
        policy_weight: float = 1.0,
        awac_beta: float = 0.0,
        awac_clip: float = 100.0,
        **kwargs: Any,
    ) -> None:
        if not cql_temperature > 0:
            raise ValueError(
                f"{type(self).__name__}: cql_temperature must be above 0, got {cql_temperature}"
            )
        self.expectile = self._share("expectile", expectile)
        self.q_weight, self.v_weight = q_weight, v_weight
        self.cql_weight, self.cql_temperature = cql_weight, cql_temperature
        self.policy_weight = policy_weight
        self.awac_beta, self.awac_clip = awac_beta, awac_clip
        super().__init__(policy, env, dataset, **kwargs)

    def _loss_of(self, sequences: Sequences) -> Loss:
        def loss_of(part: Part) -> tuple[Tensor, dict[str, Tensor]]:
            columns = {name: values[part.rows] for name, values in sequences.columns.items()}
            allowed = self._allowed(sequences, part.rows)
            with self.updater.precision():
                hidden, value_hidden, slow = self.policy.hidden_states(part.tokens, part.at)
            return self._losses(columns, allowed, hidden, value_hidden, slow)

        return loss_of

    def _losses(
        self,
        columns: dict[str, Tensor],
        allowed: Tensor | None,
        hidden: Tensor,
        value_hidden: Tensor,
        slow: Tensor,
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Losses (n,) and their parts, from hidden states (n, d)."""
        actions, real = columns["actions"], columns["real"]
        q = self.policy.q_values(value_hidden)  # (2, n, V)
        q_said = q[:, torch.arange(len(actions)), actions]  # (2, n)
        v = self.policy.value_head(value_hidden)[:, 0]
        target_q = self.policy.target_q(slow)
        target_said = chosen(target_q, actions)
        log_prob = chosen(token_log_probs(self.policy.policy_head, hidden, allowed), actions)
        columns["log_prob"] = log_prob.detach()
        with torch.no_grad():
            targets = self._targets(columns, allowed, v, target_q)
        q_loss = self._regression(targets - q_said).sum(0)
        v_loss = expectile(self._value_targets(columns, target_said) - v, self.expectile)
        cql_loss = conservative(q, actions, allowed, self.cql_temperature)
        policy_loss = -log_prob * self._clone_weights(target_said - v)
        parts = {
            "q_loss": q_loss * real,
            "v_loss": v_loss * real,
            "cql_loss": cql_loss.sum(0) * real,
            "policy_loss": policy_loss * real,
        }
        loss = (
            self.q_weight * parts["q_loss"]
            + self.v_weight * parts["v_loss"]
            + self.cql_weight * parts["cql_loss"]
            + self.policy_weight * parts["policy_loss"]
        )
        return loss, {**parts, "q": q_said.mean(0) * real, "v": v * real}

    def _regression(self, errors: Tensor) -> Tensor:
        """Loss of errors of Q, of any shape."""
        return errors.square()

    def _targets(
        self, columns: dict[str, Tensor], allowed: Tensor | None, v: Tensor, target_q: Tensor
    ) -> Tensor:
        """What both Q (n,) of what was said regress to."""
        return bellman_target(columns["rewards"], following(v), columns["goes_on"], self.gamma)

    def _value_targets(self, columns: dict[str, Tensor], target_said: Tensor) -> Tensor:
        """What V (n,) is an expectile of."""
        return target_said

    def _clone_weights(self, advantages: Tensor) -> Tensor | float:
        if not self.awac_beta:
            return 1.0
        return (self.awac_beta * advantages.detach()).exp().clamp(max=self.awac_clip)


class SingleStepRL(ILQL):
    """One step of policy improvement over what was logged (Brandfonbrener et al. 2021).

    Q and V are those of the logging policy: V is the mean of Q (expectile 0.5). With
    `returns="monte-carlo"` both regress to the returns that were seen.

    Args:
        returns: "bootstrap" or "monte-carlo".
        kwargs: as of `ILQL`.
    """

    def __init__(
        self,
        policy: str | type[BasePolicy],
        env: Any,
        dataset: Any = None,
        returns: str = "bootstrap",
        expectile: float = 0.5,
        **kwargs: Any,
    ) -> None:
        one_of("returns", returns, ["bootstrap", "monte-carlo"], "SingleStepRL")
        self.returns = returns
        super().__init__(policy, env, dataset, expectile=expectile, **kwargs)

    def _targets(
        self, columns: dict[str, Tensor], allowed: Tensor | None, v: Tensor, target_q: Tensor
    ) -> Tensor:
        if self.returns == "monte-carlo":
            return columns["returns"]
        return super()._targets(columns, allowed, v, target_q)

    def _value_targets(self, columns: dict[str, Tensor], target_said: Tensor) -> Tensor:
        return columns["returns"] if self.returns == "monte-carlo" else target_said
