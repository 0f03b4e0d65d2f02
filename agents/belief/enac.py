"""ENAC: episodic natural actor-critic, a regression of returns on the gradients of dialogues."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import mse_loss, one_hot

from agents.belief.actor_critic import ActorCritic
from agents.belief.memory import Dialogues
from agents.belief.returns import discounted, values_ahead


def natural_gradient(
    features: Tensor, returns: Tensor, weights: Tensor, damping: float
) -> tuple[Tensor, Tensor]:
    """w (P,) and J of the least squares sum_n W_n (phi_n w + J - R_n)^2 + l |w|^2.

    That is, of (Phi' W Phi + l I) w = Phi' W (R - J) with sum_n W_n (phi_n w + J - R_n) = 0, by n +
    1 unknowns in place of P + 1: with rows times sqrt W_n, w = Phi' u, (Phi Phi' + l I) u + J sqrt
    W = R, u sqrt W = 0.

    Args:
        features: phi (n, P), one row a dialogue.
        returns: R (n,).
        weights: W (n,).
        damping: l, as a share of the mean W_n |phi_n|^2.
    """
    root = weights.double().sqrt()
    phi, count = features.double() * root[:, None], len(root)
    gram = phi @ phi.T
    ridge = damping * gram.diagonal().mean().clamp(min=1e-12)
    gram.diagonal().add_(ridge)
    corner = root.new_zeros(1)
    system = torch.cat((torch.cat((gram, root[:, None]), 1), torch.cat((root, corner))[None]))
    solved = torch.linalg.solve(system, torch.cat((returns.double() * root, corner)))
    return (phi.T @ solved[:count]).to(features.dtype), solved[count].to(features.dtype)


class ENAC(ActorCritic):
    """Episodic natural actor-critic.

    phi_n = sum_t gamma^t grad log pi(a_t | s_t) of a dialogue is regressed on its return R_n =
    sum_t gamma^t r_t, with a constant beside it: the slope w is the natural gradient of the
    expected return. Weights move along it, by no more than what changes dialogues by `max_kl`.
    Values are learned for dialogues that a limit cut off alone. With a `batch_size` dialogues are
    drawn from memory, each weighted by prod_t rho_t, of the policy to the behaviour. Source: Peters
    and Schaal (2008), Neurocomputing 71, table 1; with replay Su et al. (2017), arXiv 1707.00130.
    PyDial takes the reward of a dialogue's last turn for its return.

    Args:
        args: as of `ActorCritic`; `learning_rate` is that of the values.
        batch_size, learning_starts, dialogues_per_update: as there.
        step_size: what the natural gradient is multiplied by.
        max_kl: largest KL divergence of a step, to second order, summed over a dialogue.
        damping: ridge of the regression, as a share of the mean square of phi.
        max_weight: largest weight of a dialogue.
        ent_coef: what each decision's return gains for each nat of -log pi(a_t | s_t).
        kwargs: as of `ActorCritic`.
    """

    def __init__(
        self,
        *args: Any,
        batch_size: int | None = None,
        learning_starts: int = 0,
        dialogues_per_update: int = 32,
        step_size: float = 1.0,
        max_kl: float = 0.1,
        damping: float = 0.1,
        max_weight: float = 1.0,
        **kwargs: Any,
    ) -> None:
        self.step_size, self.max_kl, self.damping = step_size, max_kl, damping
        self.max_weight = max_weight
        kwargs |= {"batch_size": batch_size, "learning_starts": learning_starts}
        kwargs |= {"dialogues_per_update": dialogues_per_update}
        super().__init__(*args, **kwargs)

    @property
    def actor(self) -> list[Tensor]:  # type: ignore[override]
        """The parameters that acts depend on."""
        policy = self.policy
        parts = policy.mlp_extractor.policy_net, policy.action_net
        return [parameter for part in parts for parameter in part.parameters()]

    def update(self, batch: Dialogues) -> dict[str, Tensor]:
        logits, values = self.policy.logits_and_values(batch.observations, batch.masks)
        log_probs = logits.log_softmax(-1).gather(1, batch.actions[:, None])[:, 0]
        features = self.features(batch, log_probs)
        returns = self.returns(batch, log_probs.detach())
        ratios = self.ratios(batch, log_probs.detach())
        trusted = ratios.clamp(max=self.max_weight)
        first = batch.last.roll(1)
        weights, mean = natural_gradient(features, returns[first], trusted, self.damping)
        step = self.step(features, weights)
        self._move(step * weights)
        value_loss = mse_loss(values[:, 0], returns)
        self.descend(self.policy, self.policy.optimizer, value_loss)
        return {"value_loss": value_loss, "entropy": -log_probs.mean(), "return": mean} | {
            "step": step, "natural_norm": weights.norm(), "weight": ratios.mean()
        }  # fmt: skip

    def ratios(self, batch: Dialogues, log_probs: Tensor) -> Tensor:
        """prod_t rho_t (n,), of log pi(a_t | s_t) (N,)."""
        ratios = (log_probs - batch.behaviour.log()).double()
        total = ratios.new_zeros(int(batch.last.sum())).index_add(0, batch.number, ratios)
        return total.exp().to(log_probs.dtype)

    def features(self, batch: Dialogues, log_probs: Tensor) -> Tensor:
        """phi (n, P), of log pi(a_t | s_t) (N,)."""
        first = batch.last.roll(1).nonzero()[:, 0]
        turns = torch.arange(len(log_probs), device=log_probs.device) - first[batch.number]
        rows = one_hot(batch.number).T * self.gamma**turns  # (n, N)
        found = torch.autograd.grad(
            log_probs, self.actor, rows, retain_graph=True, is_grads_batched=True
        )
        return torch.cat([part.flatten(1) for part in found], 1)

    def returns(self, batch: Dialogues, log_probs: Tensor) -> Tensor:
        """The return from each decision on (N,), with its entropy."""
        with torch.no_grad():
            ahead = values_ahead(
                batch.cut, self.policy.predict_values(batch.after[batch.cut])[:, 0]
            )
        rewards = batch.rewards - self.ent_coef * log_probs
        return discounted(rewards, batch.last, ahead, self.gamma)

    def step(self, features: Tensor, weights: Tensor) -> Tensor:
        """How far to go along w: the KL divergence of dialogues is 1/2 mean (phi w)^2 there."""
        curvature = (features @ weights).square().mean().clamp(min=1e-12)
        return (2 * self.max_kl / curvature).sqrt().clamp(max=self.step_size)

    @torch.no_grad()
    def _move(self, step: Tensor) -> None:
        """Add (P,) to the actor's parameters."""
        place = 0
        for parameter in self.actor:
            count = parameter.numel()
            parameter += step[place : place + count].view_as(parameter)
            place += count
