"""Implicit language Q-learning (Snell et al. 2022), and single-step RL as its special case.

The losses stand here with their equations; `ValueAlgorithm` has what every algorithm with Q values
shares: target networks that follow slowly, and decoding by advantages.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, ClassVar, NamedTuple, Unpack

import numpy as np
import torch
import torch.nn.functional as F
from stable_baselines3.common.policies import BasePolicy
from torch import Tensor

from agents.buffers.sequences import Sequences
from agents.buffers.stored import DecisionBatch, heard_places, to_the_ends
from agents.buffers.stored_acts import StoredActs
from agents.buffers.stored_returns import return_deviation, with_reward_scale
from agents.buffers.stream import StreamedData
from agents.models.action_outputs import gather_and_logsumexp
from agents.offline.algorithm import DialogueSample, Losses, OfflineAlgorithm, OfflineOptions
from agents.offline.losses import (
    HEADS,
    ValueLosses,
    bellman_target,
    conservative_loss,
    expectile_loss,
    margin_loss,
    next_values,
)
from agents.policies.belief import ValueBeliefPolicy
from agents.policies.value import ValueGPTPolicy
from dialgym.datasets import TokenBatch, TokenData
from dialgym.errors import one_of, settings_as


class ValueOptions(OfflineOptions, total=False):
    """Arguments that all algorithms with values have in common."""

    tau: float
    target_update_interval: int
    normalize_rewards: bool


class TokenValueOptions(ValueOptions, total=False):
    """Arguments of the algorithms with values of single tokens or acts."""

    losses: ValueLosses | Mapping[str, Any] | None


class ValueAlgorithm(OfflineAlgorithm):
    """Base of the algorithms that learn values and speak by them.

    Args:
        policy: the algorithm's own kind, or "GPTPolicy", on act views "MlpPolicy", which name it.
        env, dataset: as of `OfflineAlgorithm`.
        tau: of the target networks' Polyak average, target <- (1 - tau) target + tau q; 1 copies
            them.
        target_update_interval: gradient steps from one such update to the next.
        normalize_rewards: count rewards, and so values, in standard deviations of the returns of
            the dialogues (`return_deviation`), so that `cql_weight`, `max_grad_norm` and the `beta`
            of speech mean the same in all tasks. Bounds of values are in that unit, too.
        losses: of single tokens or acts, settings of `ValueLosses`.
        kwargs: further arguments of `OfflineAlgorithm`.

    Raises:
        ValueError: a number that cannot be, another policy, values with a trunk of their own that
            no loss teaches, or as of `OfflineAlgorithm`.
    """

    policy_aliases: ClassVar[dict[str, type[BasePolicy]]] = {
        "GPTPolicy": ValueGPTPolicy,
        "MlpPolicy": ValueBeliefPolicy,
    }
    policy_kinds = ()
    expected_policy = "{}, which speaks by values such as it learns"
    policy: ValueGPTPolicy  # or ValueBeliefPolicy, which has the same methods
    decoding_defaults: ClassVar[dict[str, float]] = {}
    """Settings of the policy's `decoding` that hold unless `policy_kwargs` gives others."""
    loss_settings: ClassVar[tuple[str, ...]] = ()
    """Settings of `ValueLosses` that it reads; others are refused."""
    heads: ClassVar[tuple[str, ...]] = HEADS
    """Heads that have a loss."""
    estimates_tokens: ClassVar[bool] = False
    """True where the heads are Q and V of single tokens, which can be shown and compared."""

    def __init__(
        self,
        policy: str | type[BasePolicy],
        env: Any,
        dataset: Any = None,
        tau: float = 0.005,
        target_update_interval: int = 1,
        normalize_rewards: bool = False,
        losses: ValueLosses | Mapping[str, Any] | None = None,
        **kwargs: Unpack[OfflineOptions],
    ) -> None:
        self.tau = tau
        if not 0 < tau <= 1:
            raise ValueError(f"{type(self).__name__}: tau must be above 0 and at most 1, got {tau}")
        self.target_update_interval = target_update_interval
        self.normalize_rewards = normalize_rewards
        self.reward_unit: float | None = None  # by the first dialogues that it reads
        self.losses = settings_as(ValueLosses, "losses", losses)
        self.losses.check_read(type(self).__name__, self.loss_settings)
        super().__init__(policy, env, dataset, **kwargs)

    def _share(self, name: str, number: float) -> float:
        if not 0 < number < 1:
            raise ValueError(f"{type(self).__name__}: {name} must be between 0 and 1, got {number}")
        return number

    def _setup_model(self) -> None:
        super()._setup_model()
        self.losses.check_taught(type(self).__name__, self.heads, self.policy.values_apart)
        given = self.policy_kwargs.get("decoding", {})
        self.policy.decoding = self.policy.decoding_class(**{**self.decoding_defaults, **given})

    def stored(self, dataset: Any) -> TokenData | StoredActs | StreamedData:
        """As of `OfflineAlgorithm`, in the unit of `normalize_rewards`."""
        data = super().stored(dataset)
        if not self.normalize_rewards or isinstance(data, StreamedData):  # its blocks come here
            return data
        if self.reward_unit is None:
            self.reward_unit = return_deviation(data)
        return with_reward_scale(data, 1 / self.reward_unit)

    def trunk_states(
        self, batch: DecisionBatch, at: Tensor, policy_weight: float
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Hidden states (n, d) of policy, values and targets, as the losses may change them.

        Without gradient where no head teaches the trunk; those of the policy also where it is not
        learned, so that a clone stays what it was.
        """
        detached = {*self.losses.detach, *(() if policy_weight else ("policy",))}
        learns = not detached.issuperset(self.heads)
        with torch.set_grad_enabled(learns and torch.is_grad_enabled()):
            hidden, value_hidden, target_hidden = self.policy.hidden_states(batch.observations, at)
        if "policy" in detached:
            hidden = hidden.detach()
        return hidden, value_hidden, target_hidden

    def gradient_step(self, rows: np.ndarray) -> dict[str, float]:
        """As of `OfflineAlgorithm`; the target networks follow."""
        metrics = super().gradient_step(rows)
        if self._n_updates % self.target_update_interval == 0:
            self.policy.update_targets(self.tau)
        return metrics


class Estimates(NamedTuple):
    """The networks' estimates of n decisions among A actions."""

    log_prob: Tensor  # (n,) float32, log pi(a | s) of what was said, by the cloned policy
    q: Tensor  # (2, n) float32, of what was said
    q_total: Tensor  # (2, n) float32, log sum_b exp(Q(s, b) / cql_temperature), over `allowed`
    v: Tensor  # (n,) float32
    target_q: Tensor  # (n,) float32, min target Q of what was said, without gradient
    target_v: Tensor | None  # (n,) float32, of the states by the targets; None where it is V
    excess: Tensor | None = None  # (2, n) float32, of the margin loss; None without it


class QOptions(TokenValueOptions, total=False):
    """Arguments of `ILQL` that its kin shares."""

    q_weight: float
    v_weight: float
    cql_temperature: float
    policy_weight: float
    awac_beta: float
    awac_clip: float


class ILQL(ValueAlgorithm):
    """Q-learning of single tokens or acts that never asks what an unsaid one would be worth.

    V(s) is an upper expectile of the targets' Q(s, a) over what was said, and both Q regress to
    r + gamma V(s'); a cloned policy is learned beside, and speech follows log pi + beta (min Q - V)
    (`Decoding`). Where the published code errs this one does not: losses are means over the
    learner's tokens alone, rewards are never truncated to whole numbers, and nothing is read after
    a dialogue's end.

    Args:
        policy: `agents.ValueGPTPolicy`, or "GPTPolicy", which names it here; on act views
            `agents.ValueBeliefPolicy`, or "MlpPolicy". Of its arguments, `decoding={"beta": ...}`
            says how much advantages count in speech; 8 unless given.
        env, dataset: as of `OfflineAlgorithm`.
        expectile: of the value loss; 0.5 is the mean, near 1 the best of what was said.
        q_weight, v_weight: of the Q and the value loss.
        cql_weight: of the conservative regulariser.
        cql_temperature: of the softmax over Q in it.
        policy_weight: of the cloning loss; 0 leaves the policy that `start_from` gave. With
            `losses={"detach": ["q", "v"]}` the trunk that it shares with the values stays, too.
        awac_beta: the cloning loss of each token weighs exp(awac_beta (min Q - V)), at most
            `awac_clip` (AWAC; Nair et al. 2020); 0 clones all alike.
        awac_clip: greatest such weight.
        kwargs: further arguments of `ValueAlgorithm`.

    Raises:
        ValueError: as of `ValueAlgorithm`.
    """

    decoding_defaults: ClassVar[dict[str, float]] = {"beta": 8.0}
    loss_settings = tuple(field.name for field in fields(ValueLosses))
    estimates_tokens = True

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
        **kwargs: Unpack[TokenValueOptions],
    ) -> None:
        self.expectile = self._share("expectile", expectile)
        self.q_weight, self.v_weight = q_weight, v_weight
        self.cql_weight, self.cql_temperature = cql_weight, cql_temperature
        self.policy_weight = policy_weight
        self.awac_beta, self.awac_clip = awac_beta, awac_clip
        super().__init__(policy, env, dataset, **kwargs)

    def _setup_model(self) -> None:
        super()._setup_model()
        self.losses.check(self.algorithm, self.awac_beta, not self._plays_acts)

    def read(self, dialogues: DialogueSample) -> Sequences:
        """As of `OfflineAlgorithm`, to the dialogues' ends where the other party is cloned too."""
        sequences = super().read(dialogues)
        if self.losses.transition_weight and isinstance(dialogues, TokenBatch):
            return to_the_ends(sequences, dialogues)
        return sequences

    def loss(self, batch: DecisionBatch) -> Losses:
        heard = heard_places(batch) if self.losses.transition_weight else batch.at[:0]
        at = torch.cat([batch.at, heard])
        hidden, value_hidden, target_hidden = self.trunk_states(batch, at, self.policy_weight)
        count = len(batch.at)
        estimates = self.estimates(
            batch, hidden[:count], value_hidden[:count], target_hidden[:count]
        )
        loss, metrics = self.loss_of_estimates(batch, estimates)
        if self.losses.transition_weight:
            heard_loss = self._heard_loss(batch, heard, hidden[count:])
            metrics["transition_loss"] = heard_loss
            loss = loss + self.policy_weight * self.losses.transition_weight * heard_loss
        return loss, metrics

    def estimates(
        self, batch: DecisionBatch, hidden: Tensor, value_hidden: Tensor, target_hidden: Tensor
    ) -> Estimates:
        """The networks' estimates, from hidden states (n, d) of policy, values and targets."""
        policy, of = self.policy, self.losses.for_head
        what = (batch.actions, batch.allowed)
        of_q, floor, excess = of("q", value_hidden), self.cql_floor(batch), None
        if self.losses.dm_weight:
            every_q = policy.q_values(of_q)
            q, q_total = gather_and_logsumexp(every_q, *what, self.cql_temperature, floor)
            excess = margin_loss(every_q, *what, self.losses.dm_margin)
        else:
            q, q_total = policy.q_of_said(of_q, *what, self.cql_temperature, floor)
        target_q, target_v = self.target_values(batch, target_hidden)
        return Estimates(
            log_prob=policy.log_prob_of_said(hidden, *what),
            q=q,
            q_total=q_total,
            v=policy.state_values(of("v", value_hidden)),
            target_q=target_q,
            target_v=target_v,
            excess=excess,
        )

    def target_values(
        self, batch: DecisionBatch, target_hidden: Tensor
    ) -> tuple[Tensor, Tensor | None]:
        """Min target Q (n,) of the chosen actions, and target values (n,) of the states.

        The latter are None where V is learned in their place.
        """
        return self.policy.target_q_of_said(target_hidden, batch.actions), None

    def _heard_loss(self, batch: DecisionBatch, heard: Tensor, hidden: Tensor) -> Tensor:
        """Sums (n,) of -log pi(token | s) over the other party's tokens.

        That of each dialogue stands at its first decision.
        """
        tokens, width = batch.observations.flatten(), batch.observations.shape[1]
        log_prob = self.policy.log_prob_of_said(hidden, tokens[heard + 1], None)
        sums = -log_prob.new_zeros(len(batch.observations)).index_add(0, heard // width, log_prob)
        rows = batch.at // width
        begins = F.pad(rows[1:] != rows[:-1], (1, 0), value=True)
        return torch.where(begins, sums[rows], 0.0)

    def loss_of_estimates(self, batch: DecisionBatch, estimates: Estimates) -> Losses:
        """The loss, from what the networks say: a weighted sum of four, or five.

        Q: (y - Q_i(s, a))^2, i = 1, 2, for y of `q_targets`; V: the expectile loss of min target
        Q(s, a) - V(s) (Kostrikov et al. 2021, equations 5 and 6); the conservative regulariser;
        cloning, -log pi(a | s); and with a `dm_weight` the margin loss.
        """
        q, v = estimates.q, estimates.v
        with torch.no_grad():
            q_targets = self.q_targets(batch, estimates)
            v_targets = self.v_targets(batch, estimates.target_q)
        losses = {
            "q_loss": self.q_error(q_targets - q).sum(0),
            "v_loss": expectile_loss(v_targets - v, self.expectile),
            "cql_loss": conservative_loss(q, estimates.q_total, self.cql_temperature).sum(0),
            "policy_loss": -estimates.log_prob * self._awac_weights(estimates.target_q - v),
        }
        if estimates.excess is not None:
            losses["dm_loss"] = estimates.excess.sum(0)
        losses = {name: values * batch.is_action for name, values in losses.items()}
        loss = (
            self.q_weight * losses["q_loss"]
            + self.v_weight * losses["v_loss"]
            + self.cql_weight * losses["cql_loss"]
            + self.policy_weight * losses["policy_loss"]
        )
        if estimates.excess is not None:
            loss = loss + self.losses.dm_weight * losses["dm_loss"]
        return loss, {**losses, "q": q.mean(0) * batch.is_action, "v": v * batch.is_action}

    def q_targets(self, batch: DecisionBatch, estimates: Estimates) -> Tensor:
        """Targets (n,) of both Q: r + gamma V(s'), by the target V where there is one.

        With `losses.mc_weight`, they are mixed with the returns.
        """
        values = estimates.v if estimates.target_v is None else estimates.target_v
        following = next_values(values)
        targets = bellman_target(batch.rewards, following, batch.not_done, self.gamma)
        weight = self.losses.mc_weight
        return targets.lerp(batch.returns, weight) if weight else targets

    def cql_floor(self, batch: DecisionBatch) -> Tensor | None:
        """Values (n,) below which the conservative regulariser presses nothing; None for none."""
        return None

    def v_targets(self, batch: DecisionBatch, target_said: Tensor) -> Tensor:
        """Values (n,) whose expectile V learns: min target Q(s, a) of the chosen actions."""
        return target_said

    def q_error(self, errors: Tensor) -> Tensor:
        """Loss of errors of Q, of any shape."""
        return errors.square()

    def _awac_weights(self, advantages: Tensor) -> Tensor | float:
        if not self.awac_beta:
            return 1.0
        return self.losses.policy_weights(advantages, self.awac_beta, self.awac_clip)


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
        cql_weight: float = 1e-4,
        **kwargs: Unpack[QOptions],
    ) -> None:
        one_of("returns", returns, ["bootstrap", "monte-carlo"], "SingleStepRL")
        self.returns = returns
        super().__init__(policy, env, dataset, expectile, cql_weight=cql_weight, **kwargs)

    def q_targets(self, batch: DecisionBatch, estimates: Estimates) -> Tensor:
        if self.returns == "monte-carlo":
            return batch.returns
        return super().q_targets(batch, estimates)

    def v_targets(self, batch: DecisionBatch, target_said: Tensor) -> Tensor:
        return batch.returns if self.returns == "monte-carlo" else target_said
