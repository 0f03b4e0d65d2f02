"""What stands on a backbone: one linear map for the policy, one for the value."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn


class PolicyHead(nn.Module):
    """Hidden states (..., d) to logits (..., V).

    Tied, it shares the token embeddings, as GPT-2 does. With its own weights it starts at zero:
    the first policy is uniform.
    """

    def __init__(self, width: int, vocab_size: int, tied_to: Tensor | None = None) -> None:
        super().__init__()
        own = nn.Linear(width, vocab_size, bias=False).weight
        self.weight = own if tied_to is None else tied_to
        if tied_to is None:
            nn.init.zeros_(self.weight)

    def forward(self, hidden: Tensor) -> Tensor:
        return F.linear(hidden, self.weight)


class ValueHead(nn.Module):
    """Hidden states (..., d) to values (..., 1); starts at zero everywhere."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, 1)
        nn.init.zeros_(self.linear.weight)
        nn.init.zeros_(self.linear.bias)

    def forward(self, hidden: Tensor) -> Tensor:
        return self.linear(hidden)
