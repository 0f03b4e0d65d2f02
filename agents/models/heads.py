"""What stands on a backbone: linear maps for policy and value, and a small network for Q."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

EXACT_HEAD = 2**20
"""Policy heads of at most this many weights are computed in float32 under autocast too."""


def exactly(hidden: Tensor) -> AbstractContextManager[Any]:
    """A context without autocast, which costs nothing where there is none."""
    device = hidden.device.type
    if torch.is_autocast_enabled(device):
        return torch.autocast(device, enabled=False)
    return nullcontext()


class PolicyHead(nn.Module):
    """Hidden states (..., d) to float32 logits (..., V).

    Tied, it shares the token embeddings, as GPT-2 does. With its own weights it starts at `initial`
    (V, d), or at zero: the first policy is uniform.
    """

    def __init__(
        self,
        width: int,
        vocab_size: int,
        tied_to: Tensor | None = None,
        initial: Tensor | None = None,
    ) -> None:
        super().__init__()
        own = nn.Linear(width, vocab_size, bias=False).weight
        self.weight = own if tied_to is None else tied_to
        if tied_to is None:
            with torch.no_grad():
                own.copy_(torch.zeros_like(own) if initial is None else initial)

    def forward(self, hidden: Tensor) -> Tensor:
        # bfloat16 would round a logit of 8 to 1/32, which moves the ratios of PPO; only for large
        # vocabularies is that the price of speed.
        if self.weight.numel() > EXACT_HEAD:
            return F.linear(hidden, self.weight).float()
        with exactly(hidden):
            return F.linear(hidden.float(), self.weight.float())


class ValueHead(nn.Module):
    """Hidden states (..., d) to float32 values (..., 1); starts at zero everywhere."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, 1)
        nn.init.zeros_(self.linear.weight)
        nn.init.zeros_(self.linear.bias)

    def forward(self, hidden: Tensor) -> Tensor:
        with exactly(hidden):
            return self.linear(hidden.float())


class MLPHead(nn.Module):
    """Hidden states (..., d) to float32 outputs (..., k) by way of 2 d units; starts at zero."""

    def __init__(self, width: int, outputs: int) -> None:
        super().__init__()
        self.inner = nn.Linear(width, 2 * width)
        self.outer = nn.Linear(2 * width, outputs)
        nn.init.zeros_(self.outer.weight)
        nn.init.zeros_(self.outer.bias)

    def forward(self, hidden: Tensor) -> Tensor:
        with exactly(hidden):
            return self.outer(self.inner(hidden.float()).relu())
