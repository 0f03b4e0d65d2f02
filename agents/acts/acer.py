"""ACER: actor-critic with experience replay, over whole dialogues and within masks."""

from __future__ import annotations

from typing import Any, ClassVar, Unpack

import torch
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.type_aliases import PyTorchObs, Schedule
from torch import Tensor, nn
from torch.nn.functional import mse_loss

from agents.acts.actor_critic import ActorCritic, DialogueOptions
from agents.acts.trust_region import TrustRegion
from agents.buffers.dialogues import DialogueSample
from agents.models.build import make_optimizer
from agents.models.heads import chosen
from agents.policies.belief import BeliefPolicy
from agents.returns import bootstrap_values, retrace


class ActorQPolicy(BeliefPolicy):
    """`BeliefPolicy` whose critic has a Q value of each act; V is their mean under the policy.

    Args:
        args, kwargs: as of `BeliefPolicy`.
    """

    def _build(self, lr_schedule: Schedule) -> None:
        super()._build(lr_schedule)
        self.value_net = nn.Linear(self.mlp_extractor.latent_dim_vf, int(self.action_space.n))  # type: ignore[attr-defined]
        nn.init.orthogonal_(self.value_net.weight, 0.01)
        nn.init.zeros_(self.value_net.bias)
        self.optimizer = make_optimizer(self, lr_schedule)

    def predict_values(self, obs: PyTorchObs, allowed: Tensor | None = None) -> Tensor:
        """V (n, 1), over the acts that masks (n, A) allow."""
        assert isinstance(obs, Tensor)
        logits, q_values = self.logits_and_values(obs, allowed)
        return (logits.softmax(-1) * q_values).sum(-1, keepdim=True)


class ACER(ActorCritic):
    """Actor-critic with experience replay: retrace, truncated weights, trust region.

    Q learns the retrace targets of dialogues drawn from memory. With rho(a) = pi(a) / mu(a), mu the
    behaviour, the policy follows min(c, rho_t) grad log pi(a_t) (Q_t^ret - V_t), and for what the
    truncation leaves out sum_a [1 - c / rho(a)]+ pi(a) grad log pi(a) (Q(a) - V_t). Source: Wang et
    al. (2017), arXiv 1611.01224; over dialogues Weisz et al. (2018), arXiv 1802.03753.

    Args:
        policy, env: as of `ActorCritic`.
        max_weight: c.
        trust_delta: how far KL(average || policy) may rise in a step, at each decision; None has no
            trust region.
        average_tau: how much of the policy goes into its average at each step.
        kwargs: further arguments of `ActorCritic`.
    """

    policy_aliases: ClassVar[dict[str, type[BasePolicy]]] = {"MlpPolicy": ActorQPolicy}
    policy: ActorQPolicy

    def __init__(
        self,
        policy: str | type[BasePolicy],
        env: Any,
        *,
        max_weight: float = 5.0,
        trust_delta: float | None = 1.0,
        average_tau: float = 0.05,
        **kwargs: Unpack[DialogueOptions],
    ) -> None:
        self.max_weight = max_weight
        self.trust_delta, self.average_tau = trust_delta, average_tau
        super().__init__(policy, env, **kwargs)

    def _setup_model(self) -> None:
        super()._setup_model()
        delta = float("inf") if self.trust_delta is None else self.trust_delta
        self.trust_region = TrustRegion(self.policy, delta, self.average_tau)

    def update(self, batch: DialogueSample) -> dict[str, Tensor]:
        logits, q_values = self.policy.logits_and_values(batch.observations, batch.masks)
        log_probs = logits.log_softmax(-1)
        chosen_q = chosen(q_values, batch.actions)
        targets = self.targets(batch, log_probs.detach(), q_values.detach())
        entropy = -(log_probs.exp() * log_probs).sum(-1)
        gain = self.gain(batch, log_probs, q_values.detach(), targets)
        value_loss = 0.5 * mse_loss(chosen_q, targets)
        metrics = self.step_towards(batch, logits, entropy, gain, value_loss)
        return {**metrics, "q_value": chosen_q.mean()}

    @torch.no_grad()
    def targets(self, batch: DialogueSample, log_probs: Tensor, q_values: Tensor) -> Tensor:
        """Q_t^ret (N,), of log pi and Q (N, A)."""
        probs, cut = log_probs.exp(), batch.cut
        after = self.policy.predict_values(batch.after[cut], batch.masks_after_cut[cut])[:, 0]
        return retrace(
            batch.rewards,
            (probs * q_values).sum(-1),
            chosen(q_values, batch.actions),
            chosen(probs, batch.actions) / batch.behaviour,
            batch.last,
            bootstrap_values(cut, after),
            self.gamma,
        )

    def gain(
        self, batch: DialogueSample, log_probs: Tensor, q_values: Tensor, targets: Tensor
    ) -> Tensor:
        """Surrogate (N,) whose gradient is eq. 7, from log pi and Q (N, A) and Q^ret (N,)."""
        probs = log_probs.detach().exp()
        values = (probs * q_values).sum(-1)
        weight = (chosen(probs, batch.actions) / batch.behaviour).clamp(max=self.max_weight)
        truncated = weight * (targets - values) * chosen(log_probs, batch.actions)
        # [1 - c / rho]+ pi = [pi - c mu]+, which also holds where mu is 0.
        left_out = (probs - self.max_weight * batch.probs).clamp(min=0)
        correction = left_out * (q_values - values[:, None]) * log_probs
        return truncated + correction.masked_fill(~batch.masks, 0.0).sum(-1)
