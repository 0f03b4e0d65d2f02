"""A2C: advantage actor-critic over whole dialogues, within masks."""

from __future__ import annotations

from typing import Any, Unpack

from stable_baselines3.common.policies import BasePolicy
from torch import Tensor
from torch.nn.functional import mse_loss

from agents.acts.actor_critic import ActorCritic, ActorCriticOptions
from agents.buffers.dialogues import DialogueSample
from agents.models.heads import chosen
from agents.returns import vtrace


class OnceOptions(ActorCriticOptions, total=False):
    """Arguments of `ActorCritic` that `A2C` hands on."""

    dialogues_per_update: int


class A2COptions(OnceOptions, total=False):
    """Arguments of `A2C` that `TRACER` shares."""

    gae_lambda: float
    max_weight: float


class A2C(ActorCritic):
    """Advantage actor-critic: each dialogue is learned from once, as soon as it has ended.

    The gradient is that of min(c, rho_t) A_t log pi(a_t | s_t), rho_t = pi(a_t | s_t) over the
    probability that a_t was chosen with; advantages and targets of the values are V-trace's, which
    for rho = 1 and `gae_lambda=1` are the return less V, and the return. With a `batch_size` it
    learns from memory, for which these weights are. Source: Mnih et al. (2016), arXiv 1602.01783;
    PyDial's has the replay and leaves the weights out.

    Args:
        policy, env: as of `ActorCritic`.
        batch_size, learning_starts: as of `ActorCritic`.
        gae_lambda: how far returns are trusted over values, from 0 to 1.
        max_weight: c.
        kwargs: further arguments of `ActorCritic`.
    """

    def __init__(
        self,
        policy: str | type[BasePolicy],
        env: Any,
        *,
        batch_size: int | None = None,
        learning_starts: int = 0,
        gae_lambda: float = 1.0,
        max_weight: float = 1.0,
        **kwargs: Unpack[OnceOptions],
    ) -> None:
        self.gae_lambda, self.max_weight = gae_lambda, max_weight
        super().__init__(
            policy, env, batch_size=batch_size, learning_starts=learning_starts, **kwargs
        )

    def update(self, batch: DialogueSample) -> dict[str, Tensor]:
        logits, values = self.policy.logits_and_values(batch.observations, batch.masks)
        log_probs = logits.log_softmax(-1)
        log_prob = chosen(log_probs, batch.actions)
        ratios = log_prob.detach().exp() / batch.behaviour
        targets, advantages = vtrace(
            batch.rewards,
            values[:, 0].detach(),
            ratios,
            batch.last,
            self.values_after(batch),
            self.gamma,
            self.gae_lambda,
        )
        entropy = -(log_probs.exp() * log_probs).sum(-1)
        gain = ratios.clamp(max=self.max_weight) * advantages * log_prob
        value_loss = mse_loss(values[:, 0], targets)
        metrics = self.step_towards(batch, logits, entropy, gain, value_loss)
        return {**metrics, "weight": ratios.mean()}
