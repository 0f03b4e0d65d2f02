"""Outputs of the chosen actions and log-sum-exps over all, without all outputs at once.

Of n decisions among V tokens a loss needs few numbers: the output of the chosen one, and the log of
the sum over all. They are computed for a few hundred decisions at a time, whose outputs stay in the
processor's cache; one table (n, V) of probabilities is kept for the gradient.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.compiler import is_compiling

from agents.models.masking import FORBIDDEN

ROWS = 256
"""Decisions whose outputs are computed at once."""


def action_and_logsumexp(
    head: nn.Module,
    hidden: Tensor,
    actions: Tensor,
    allowed: Tensor | None = None,
    temperature: float = 1.0,
    floor: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Outputs (n,) of the chosen actions, and log sum_b exp(output(b) / temperature) (n,).

    Args:
        head: makes outputs (n, V) of hidden states.
        hidden: (n, d).
        actions: (n,) int64, the chosen ones.
        allowed: (n, V) bool, over what the sum is; None for everything.
        temperature: of the sum.
        floor: (n,); in the sum no output counts for less. None for none.
    """
    if not _in_pieces(head, hidden):
        return gather_and_logsumexp(head(hidden), actions, allowed, temperature, floor)
    inputs, weight, bias = head.linear_map(hidden)  # type: ignore[operator]
    found: tuple[Tensor, Tensor] = _ActionAndLogSumExp.apply(
        inputs, weight, bias, actions, allowed, temperature, floor
    )
    return found


def gather_and_logsumexp(
    outputs: Tensor,
    actions: Tensor,
    allowed: Tensor | None = None,
    temperature: float = 1.0,
    floor: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """`action_and_logsumexp`, given outputs (..., n, V)."""
    said = outputs.gather(-1, actions.expand(outputs.shape[:-1])[..., None])[..., 0]
    raised = outputs if floor is None else outputs.maximum(floor[:, None])
    if allowed is not None:
        raised = raised.masked_fill(~allowed, FORBIDDEN)
    return said, (raised / temperature).logsumexp(-1)


def action_outputs(head: nn.Module, hidden: Tensor, actions: Tensor) -> Tensor:
    """Outputs (n,) of the chosen actions, from hidden states (n, d)."""
    if not _in_pieces(head, hidden):
        return head(hidden).gather(-1, actions[:, None])[:, 0]  # type: ignore[no-any-return]
    inputs, weight, bias = head.linear_map(hidden)  # type: ignore[operator]
    said: Tensor = (inputs * weight[actions]).sum(-1)
    return said if bias is None else said + bias[actions]


def _in_pieces(head: nn.Module, hidden: Tensor) -> bool:
    """Return True on a CPU in float32, for heads that end with a linear map."""
    plain = hidden.device.type == "cpu" and hidden.dtype == torch.float32
    return (
        plain
        and hasattr(head, "linear_map")
        and not torch.is_autocast_enabled("cpu")
        and not is_compiling()
    )


class _ActionAndLogSumExp(torch.autograd.Function):
    """The gradient of a total is softmax(outputs / temperature) / temperature."""

    @staticmethod
    def forward(
        ctx: Any,
        inputs: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        actions: Tensor,
        allowed: Tensor | None,
        temperature: float,
        floor: Tensor | None,
    ) -> tuple[Tensor, Tensor]:
        n = len(inputs)
        keep = any(ctx.needs_input_grad)
        table = inputs.new_empty(n if keep else min(n, ROWS), len(weight))
        said, total = inputs.new_empty(n), inputs.new_empty(n)
        for first in range(0, n, ROWS):
            rows = slice(first, first + ROWS)
            part = table[rows] if keep else table[: n - first]
            torch.mm(inputs[rows], weight.t(), out=part)
            if bias is not None:
                part.add_(bias)
            said[rows] = part.gather(1, actions[rows, None])[:, 0]
            fixed = None if floor is None else part < floor[rows, None]
            if fixed is not None:
                part.clamp_(min=floor[rows, None])  # type: ignore[index]
            if allowed is not None:
                part.masked_fill_(~allowed[rows], FORBIDDEN)
            if temperature != 1:
                part.div_(temperature)
            most = part.amax(1)
            # Not exp: MKL takes ten times as long where an exponential vanishes.
            torch.softmax(part, 1, out=part)
            total[rows] = most - part.amax(1).log()
            if fixed is not None:
                part.masked_fill_(fixed, 0.0)
        ctx.save_for_backward(inputs, weight, actions, table if keep else None)
        ctx.temperature, ctx.has_bias = temperature, bias is not None
        return said, total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        inputs, weight, actions, table = ctx.saved_tensors
        of_said, of_total = grads[0], grads[1] / ctx.temperature
        learned = ctx.needs_input_grad[1]
        of_inputs = torch.empty_like(inputs)
        of_weight = torch.zeros_like(weight) if learned else None
        of_bias = weight.new_zeros(len(weight)) if learned and ctx.has_bias else None
        for first in range(0, len(inputs), ROWS):
            rows = slice(first, first + ROWS)
            part = table[rows] * of_total[rows, None]
            part.scatter_add_(1, actions[rows, None], of_said[rows, None])
            torch.mm(part, weight, out=of_inputs[rows])
            if of_weight is not None:
                of_weight.addmm_(part.t(), inputs[rows])
            if of_bias is not None:
                of_bias.add_(part.sum(0))
        return of_inputs, of_weight, of_bias, None, None, None, None
