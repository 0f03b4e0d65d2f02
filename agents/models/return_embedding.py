"""Return conditioning: a target return as an input of a backbone."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn


class ReturnEmbedding(nn.Module):
    """A linear map of standardised returns to embeddings; starts at zero: returns change nothing.

    Attributes:
        mean, scale: scalars, what returns are standardised with.
    """

    mean: Tensor
    scale: Tensor

    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(1, width, bias=False)
        nn.init.zeros_(self.linear.weight)
        self.register_buffer("mean", torch.zeros(()))
        self.register_buffer("scale", torch.ones(()))

    def forward(self, returns: Tensor) -> Tensor:
        """Returns (...) to embeddings (..., d)."""
        embedded: Tensor = self.linear(((returns - self.mean) / self.scale)[..., None])
        return embedded

    def standardise(self, returns: Tensor) -> None:
        """Take mean and deviation from returns (n,)."""
        self.mean.copy_(returns.mean())
        deviation = returns.std(correction=0)
        self.scale.copy_(deviation if deviation > 0 else torch.ones_like(deviation))


def add_to_embeddings(backbone: Any, what: Callable[[], Tensor | float]) -> None:
    """Let a backbone add `what()`, (d,) or a number, to the embedding of each token it reads."""
    model = getattr(backbone, "model", None)
    embedding = backbone.wte if model is None else model.get_input_embeddings()
    embedding.register_forward_hook(partial(_plus, what))  # copies with whom `what` is a method of


def _plus(
    what: Callable[[], Tensor | float], module: nn.Module, inputs: Any, output: Tensor
) -> Tensor:
    """The output of an embedding, and `what()`."""
    return output + what()
