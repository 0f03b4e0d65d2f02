"""Gradients of a minibatch of sequences, over as many forwards and processes as it takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.amp import GradScaler
from torch.nn.utils import clip_grad_norm_

from agents.buffers.sequences import Part, Sequences
from agents.distributed.fsdp import Shares
from agents.distributed.processes import Ranks
from agents.faults import check_number, check_weights
from dialgym.errors import one_of

AUTOCAST = {"bf16": torch.bfloat16, "fp16": torch.float16}
CPU_TOKENS, GPU_TOKENS = 4096, 65536
LEAST_SCALE = 1.0
"""A gradient that is not finite at this scale of the loss is no matter of float16's range."""

Loss = Callable[[Part], tuple[Tensor, dict[str, Tensor]]]
"""Losses (n,) of a part's decisions, and figures (n,) to be averaged and logged."""


class Gradients:
    """A part of an algorithm of Stable-Baselines3: accumulates gradients on its policy.

    In float16 the loss is scaled, so that small gradients do not vanish; a step whose gradient
    overflows is skipped, and the scale halved (Micikevicius et al. 2018, section 3.2).
    """

    policy: Any
    device: torch.device
    ranks: Ranks
    autocast: str | None
    micro_batch_tokens: int | None
    max_grad_norm: float
    num_timesteps: int
    scaler: GradScaler
    """Of the loss; it is saved with the other attributes, and does nothing but in float16."""
    shards: Shares | None = None
    """Of the policy, while several processes share its weights or its optimizer's state."""

    def _check_arguments(self, autocast: str | None, **counts: int) -> None:
        """Raises ValueError for an unknown precision, and for counts below 1."""
        one_of("autocast", autocast, [None, *AUTOCAST], type(self).__name__)
        for name, number in counts.items():
            if number < 1:
                raise ValueError(f"{type(self).__name__}: {name} must be at least 1, got {number}")

    def _setup_scaler(self) -> None:
        """The scaler of a new learner, or of a loaded one, which may be on another device now.

        Raises ValueError where the launcher and the learner want different precisions.
        """
        self.ranks.launched.check_precision(self.autocast)
        saved = self.scaler.state_dict() if hasattr(self, "scaler") else {}
        self.scaler = GradScaler(self.device.type, enabled=self.autocast == "fp16")
        if saved:
            self.scaler.load_state_dict(saved)

    @property
    def _where(self) -> str:
        """Learner and time, for errors."""
        return f"{type(self).__name__} at timestep {self.num_timesteps}"

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

        Raises:
            FloatingPointError: the loss is not finite.
        """
        self.policy.optimizer.zero_grad()
        [total] = self.ranks.sums(float(sequences.sizes[chosen].sum() if count is None else count))
        sums = dict.fromkeys(names, 0.0)
        for part, weight, last in self._parts(sequences, chosen):
            loss, figures = loss_of(part)
            self._backward(weight * loss.sum() / max(total, 1), last)
            for name, figure in {"loss": loss, **figures}.items():
                sums[name] += weight * float(figure.detach().sum())
        if self.shards is None:  # which has summed them already
            self.ranks.sum_gradients(self.policy.parameters())
        means = self.ranks.sums(*sums.values())
        found = {name: mean / max(total, 1) for name, mean in zip(sums, means, strict=True)}
        check_number("loss", found["loss"], self._where)
        return found

    def _backward(self, loss: Tensor, last: bool) -> None:
        if self.shards is None:
            self.scaler.scale(loss).backward()
        else:
            self.shards.backward(loss, last)

    def _parts(
        self, sequences: Sequences, chosen: np.ndarray
    ) -> Iterator[tuple[Part, float, bool]]:
        """What to read, what it counts, and in shares whether it is the last.

        Processes that share weights read in step: one that has less reads something for nothing.
        """
        if self.shards is None:
            yield from (
                (part, 1.0, False) for part in sequences.parts(chosen, self._forward_tokens)
            )
            return
        parts = list(sequences.parts(chosen, self._forward_tokens))
        count = self.ranks.most(len(parts))
        weighted = [(part, 1.0) for part in parts]
        weighted += [(sequences.shortest(), 0.0)] * (count - len(parts))
        yield from ((*each, number == count) for number, each in enumerate(weighted, 1))

    def _step_optimizer(self) -> dict[str, float]:
        """Clip the gradient and follow it.

        Returns:
            Its norm before, and in float16 whether the step was skipped.

        Raises:
            FloatingPointError: the gradient is not finite, and no scale of the loss is to blame.
        """
        optimizer, scale = self.policy.optimizer, self.scaler.get_scale()
        self.scaler.unscale_(optimizer)
        norm = self._clip()
        if not self.scaler.is_enabled() or scale <= LEAST_SCALE:
            check_number("gradient", norm, self._where)
        self.scaler.step(optimizer)
        self.scaler.update()
        if not self.scaler.is_enabled():
            return {"grad_norm": norm}
        skipped = not np.isfinite(norm)
        figures = {"skipped_steps": float(skipped), "loss_scale": scale}
        return figures if skipped else {**figures, "grad_norm": norm}

    def _clip(self) -> float:
        """Clip the gradient; its norm before."""
        if self.shards is not None:
            return self.shards.clip(self.max_grad_norm)
        return float(clip_grad_norm_(self.policy.parameters(), self.max_grad_norm))

    def save(self, *args: Any, **kwargs: Any) -> None:
        """As everywhere in Stable-Baselines3; sharded, while weights are gathered.

        Raises FloatingPointError for weights that have overflowed, before anything is written.
        """
        check_weights(self.policy, self._where)
        super().save(*args, **kwargs)  # type: ignore[misc]

    def get_parameters(self) -> dict[str, dict]:
        """As everywhere in Stable-Baselines3."""
        if self.shards is None:
            return super().get_parameters()  # type: ignore[misc,no-any-return]
        own = self.shards.state()
        names, _ = self._get_torch_save_params()  # type: ignore[attr-defined]
        return {n: own[n] if n in own else getattr(self, n).state_dict() for n in names}

    @property
    def _forward_tokens(self) -> int:
        default = CPU_TOKENS if self.device.type == "cpu" else GPU_TOKENS
        return self.micro_batch_tokens or default

    def _precision(self) -> AbstractContextManager[Any]:
        if self.autocast is None:
            return nullcontext()
        return torch.autocast(self.device.type, AUTOCAST[self.autocast])
