"""ENAC: episodic natural actor-critic, a regression of returns on the gradients of dialogues."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple, Unpack

import torch
from stable_baselines3.common.policies import BasePolicy
from torch import Tensor, nn
from torch.nn.functional import mse_loss

from agents.acts.actor_critic import ActorCritic, ActorCriticOptions
from agents.argument_checks import POSITIVE, require
from agents.buffers.dialogues import DialogueSample
from agents.models.heads import chosen
from agents.returns import discounted_returns
from agents.updater import check_tensor


class Regression(NamedTuple):
    """Regression of returns R on phi w + J in dual form: w = phi' u, with u one weight a dialogue.

    Attributes:
        u: (n,).
        mean: J, a number.
        slope: phi w (n,), what the regression expects of each dialogue beyond J.
    """

    u: Tensor
    mean: Tensor
    slope: Tensor


def natural_gradient(gram: Tensor, returns: Tensor, weights: Tensor, damping: float) -> Regression:
    """Least squares sum_n W_n (phi_n w + J - R_n)^2 + l |w|^2, by n + 1 unknowns.

    That is, of (Phi' W Phi + l I) w = Phi' W (R - J) with sum_n W_n (phi_n w + J - R_n) = 0. With
    rows times sqrt W_n, w = Phi' v, (Phi Phi' + l I) v + J sqrt W = R, v sqrt W = 0.

    Args:
        gram: Phi Phi' (n, n), of rows phi_n.
        returns: R (n,).
        weights: W (n,).
        damping: l, as a share of the mean W_n |phi_n|^2.

    Without any weight, of dialogues that the policy would never hold, the slope is 0.
    """
    if not bool(weights.any()):
        return Regression(torch.zeros_like(returns), returns.mean(), torch.zeros_like(returns))
    root, gram = weights.double().sqrt(), gram.double()
    system = gram * root[:, None] * root
    ridge = damping * system.diagonal().mean().clamp(min=1e-12)
    system.diagonal().add_(ridge)
    corner = root.new_zeros(1)
    system = torch.cat((torch.cat((system, root[:, None]), 1), torch.cat((root, corner))[None]))
    solved = torch.linalg.solve(system, torch.cat((returns.double() * root, corner)))
    u = solved[:-1] * root
    return Regression(*(part.to(returns.dtype) for part in (u, solved[-1], gram @ u)))


class ENAC(ActorCritic):
    """Episodic natural actor-critic.

    phi_n = sum_t gamma^t grad log pi(a_t | s_t) of a dialogue is regressed on its return R_n =
    sum_t gamma^t r_t, with a constant beside it: the slope w is the natural gradient of the
    expected return. Weights move along it, by no more than what changes dialogues by `max_kl`.
    Values are learned for dialogues that a limit cut off alone. With a `batch_size` dialogues are
    drawn from memory, each weighted by prod_t rho_t, of the policy to the behaviour. Source: Peters
    and Schaal (2008), Neurocomputing 71, table 1; with replay Su et al. (2017), arXiv 1707.00130.
    PyDial takes the reward of a dialogue's last turn for its return.

    The actor's layers are linear ones. phi has as many columns as they have weights; the regression
    asks for phi phi' alone, which each layer's inputs and the gradients of its outputs give.

    Args:
        policy, env: as of `ActorCritic`.
        batch_size, learning_starts, dialogues_per_update: as of `ActorCritic`.
        step_size: what the natural gradient is multiplied by; where it is large, `max_kl` alone
            bounds how far noise may lead.
        max_kl: largest KL divergence of a step, to second order, summed over a dialogue.
        damping: ridge of the regression, as a share of the mean square of phi.
        min_weight, max_weight: bounds of a dialogue's weight.
        learning_rate: that of the values.
        ent_coef: what each decision's return gains for each nat of -log pi(a_t | s_t).
        kwargs: further arguments of `ActorCritic`.
    """

    def __init__(
        self,
        policy: str | type[BasePolicy],
        env: Any,
        *,
        batch_size: int | None = None,
        learning_starts: int = 0,
        dialogues_per_update: int = 32,
        step_size: float = 0.1,
        max_kl: float = 0.1,
        damping: float = 0.1,
        min_weight: float = 0.0,
        max_weight: float = 1.0,
        **kwargs: Unpack[ActorCriticOptions],
    ) -> None:
        if batch_size is not None:  # a dialogue that is drawn twice makes the regression singular
            require("ENAC with batch_size", POSITIVE, damping=damping)
        self.step_size, self.max_kl, self.damping = step_size, max_kl, damping
        self.min_weight, self.max_weight = min_weight, max_weight
        super().__init__(
            policy,
            env,
            learning_starts=learning_starts,
            batch_size=batch_size,
            dialogues_per_update=dialogues_per_update,
            **kwargs,
        )

    @property
    def actor(self) -> list[nn.Linear]:  # type: ignore[override]
        """The layers that acts depend on."""
        policy = self.policy
        parts = policy.mlp_extractor.policy_net, policy.action_net
        return [layer for part in parts for layer in part.modules() if isinstance(layer, nn.Linear)]

    def update(self, batch: DialogueSample) -> dict[str, Tensor]:
        """One step of actor and values on a batch of dialogues; figures for the log.

        Raises:
            FloatingPointError: returns, their regression, the step or the gradient of the values
                are not finite; neither actor nor values have been moved then.
        """
        with watched(self.actor) as calls:
            logits, values = self.policy.logits_and_values(batch.observations, batch.masks)
        log_probs = chosen(logits.log_softmax(-1), batch.actions)
        returns = self.returns(batch, log_probs.detach())
        ratios = self.ratios(batch, log_probs.detach())
        discounts = self.discounts(batch)
        weights = ratios.clamp(self.min_weight, self.max_weight)
        gram = self.gram(batch, log_probs * discounts, calls)
        for what, given in {"return": returns, "weight": weights, "gradient": gram}.items():
            check_tensor(what, given, self._where)
        found = natural_gradient(gram, returns[batch.last.roll(1)], weights, self.damping)
        step = self.step(found.slope)
        moves = self._moves(step, log_probs @ (discounts * found.u[batch.number]))
        value_loss = mse_loss(values[:, 0], returns)
        self.descend(self.policy.optimizer, value_loss)
        with torch.no_grad():
            for parameter, move in moves:
                parameter.add_(move)
        return {"value_loss": value_loss, "entropy": -log_probs.mean(), "return": found.mean} | {
            "step": step, "weight": ratios.mean()
        }  # fmt: skip

    def ratios(self, batch: DialogueSample, log_probs: Tensor) -> Tensor:
        """prod_t rho_t (n,), of log pi(a_t | s_t) (N,)."""
        ratios = (log_probs - batch.behaviour.log()).double()
        total = ratios.new_zeros(int(batch.last.sum())).index_add(0, batch.number, ratios)
        return total.exp().to(log_probs.dtype)

    def discounts(self, batch: DialogueSample) -> Tensor:
        """gamma^t (N,)."""
        first = batch.last.roll(1).nonzero()[:, 0]
        turns = torch.arange(len(batch.last), device=first.device) - first[batch.number]
        return torch.as_tensor(self.gamma, device=turns.device) ** turns

    def gram(self, batch: DialogueSample, log_probs: Tensor, calls: list[Call]) -> Tensor:
        """phi phi' (n, n), of gamma^t log pi(a_t | s_t) (N,) and the calls of the layers.

        The gradient by a layer's weights is, of a decision, the outer product of its input and the
        gradient at its output; the inner product of two of them that of both.
        """
        outputs = [call.output for call in calls]
        slopes = torch.autograd.grad(log_probs.sum(), outputs, retain_graph=True)
        pairs = log_probs.new_zeros(len(log_probs), len(log_probs))
        for slope, call in zip(slopes, calls):
            pairs += (slope @ slope.T) * (call.input @ call.input.T + float(call.has_bias))
        count = int(batch.last.sum())
        rows = pairs.new_zeros(count, len(log_probs)).index_add(0, batch.number, pairs)
        return pairs.new_zeros(count, count).index_add(1, batch.number, rows)

    def returns(self, batch: DialogueSample, log_probs: Tensor) -> Tensor:
        """The return from each decision on (N,), with its entropy."""
        rewards = batch.rewards - self.ent_coef * log_probs
        columns = (rewards.double(), batch.last, self.values_after(batch).double())
        sums, ends, following = (column.cpu().numpy() for column in columns)
        return rewards.new_tensor(discounted_returns(sums, self.gamma, ends, following))

    def step(self, slope: Tensor) -> Tensor:
        """Step size along w: the KL divergence of dialogues is 1/2 mean (phi w)^2 there."""
        curvature = slope.square().mean().clamp(min=1e-12)
        return (2 * self.max_kl / curvature).sqrt().clamp(max=self.step_size)

    def _moves(self, step: Tensor, total: Tensor) -> list[tuple[Tensor, Tensor]]:
        """Moves of the actor's weights along the gradient of u phi, which is w."""
        parameters = [parameter for layer in self.actor for parameter in layer.parameters()]
        slopes = torch.autograd.grad(total, parameters, retain_graph=True)
        moves = [step * slope for slope in slopes]
        for move in moves:
            check_tensor("natural gradient", move, self._where)
        return list(zip(parameters, moves))


class Call(NamedTuple):
    """Input (N, I) and output (N, O) of a linear layer."""

    input: Tensor
    output: Tensor
    has_bias: bool


@contextmanager
def watched(layers: list[nn.Linear]) -> Iterator[list[Call]]:
    """The calls of layers, while it lasts."""
    calls: list[Call] = []

    def keep(layer: nn.Linear, given: tuple[Tensor], output: Tensor) -> None:
        calls.append(Call(given[0].detach(), output, layer.bias is not None))

    with ExitStack() as hooks:
        for layer in layers:
            hooks.callback(layer.register_forward_hook(keep).remove)  # type: ignore[arg-type]
        yield calls
