"""Gradients of a minibatch of sequences, over as many forwards and processes as it takes."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import torch
from torch import Tensor

from agents.common.ranks import Ranks
from agents.common.sequences import Part, Sequences
from dialgym.errors import one_of

AUTOCAST = {"bf16": torch.bfloat16}
CPU_TOKENS, GPU_TOKENS = 4096, 65536

Loss = Callable[[Part], tuple[Tensor, dict[str, Tensor]]]
"""Losses (n,) of a part's decisions, and figures (n,) to be averaged and logged."""


class Gradients:
    """A part of an algorithm of Stable-Baselines3: accumulates gradients on its policy."""

    policy: Any
    device: torch.device
    ranks: Ranks
    autocast: str | None
    micro_batch_tokens: int | None
    max_grad_norm: float

    def _check_arguments(self, autocast: str | None, **counts: int) -> None:
        """Raises ValueError for an unknown precision, and for counts below 1."""
        one_of("autocast", autocast, [None, *AUTOCAST], type(self).__name__)
        for name, number in counts.items():
            if number < 1:
                raise ValueError(f"{type(self).__name__}: {name} must be at least 1, got {number}")

    def _gradient(
        self,
        sequences: Sequences,
        chosen: np.ndarray,
        loss_of: Loss,
        names: tuple[str, ...],
        count: int | None = None,
    ) -> dict[str, float]:
        """Gradient of the mean loss of all decisions in the sequences `chosen`.

        Args:
            sequences: of which some are chosen.
            chosen: (s,) their numbers; may be none in one of several processes.
            loss_of: reads a part.
            names: of the figures; "loss" itself may be among them.
            count: decisions to divide by, of this process; all of them when None.

        Returns:
            Means over the decisions of all processes.
        """
        self.policy.optimizer.zero_grad()
        [total] = self.ranks.sums(float(sequences.sizes[chosen].sum() if count is None else count))
        sums = dict.fromkeys(names, 0.0)
        for part in sequences.parts(chosen, self._forward_tokens):
            loss, figures = loss_of(part)
            (loss.sum() / max(total, 1)).backward()
            for name, figure in {"loss": loss, **figures}.items():
                sums[name] += float(figure.detach().sum())
        self.ranks.sum_gradients(self.policy.parameters())
        means = self.ranks.sums(*sums.values())
        return {name: mean / max(total, 1) for name, mean in zip(sums, means, strict=True)}

    def _step_optimizer(self) -> float:
        """Clip the gradient and follow it; its norm before."""
        norm = torch.nn.utils.clip_grad_norm_(self.policy.parameters(), self.max_grad_norm)
        self.policy.optimizer.step()
        return float(norm)

    @property
    def _forward_tokens(self) -> int:
        default = CPU_TOKENS if self.device.type == "cpu" else GPU_TOKENS
        return self.micro_batch_tokens or default

    def _precision(self) -> AbstractContextManager[Any]:
        if self.autocast is None:
            return nullcontext()
        return torch.autocast(self.device.type, AUTOCAST[self.autocast])
