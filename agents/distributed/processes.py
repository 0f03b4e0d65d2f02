"""Data parallel training: several processes, each with its own dialogues, one set of weights.

Start them with `torchrun --nproc-per-node=K`; a process started without it is alone and loads
nothing. Accelerate finds the devices and moves the tensors.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from agents.distributed.launched import Launched
from dialgym.optional import require


class Processes:
    """The processes that train together, and which of them this one is.

    Attributes:
        count: how many processes train together, from `WORLD_SIZE`.
        rank: which of them this one is, from `RANK`; 0 where it is alone.
        launched: what `accelerate launch` was asked for.

    Raises:
        ValueError: something that our update cannot do was asked for.
        RuntimeError: the processes that were asked for did not come up.
    """

    def __init__(self, device: torch.device | None = None) -> None:
        self.count = int(os.environ.get("WORLD_SIZE", "1"))
        self.rank = int(os.environ.get("RANK", "0")) if self.count > 1 else 0
        self.launched = Launched.read()
        self.on_cpu = device is None or device.type == "cpu"
        if self.count > 1:
            if self.launched.zero is not None:
                require("deepspeed", "deepspeed", "distributed_type: DEEPSPEED")
            found = self._accelerator.num_processes
            if found != self.count:
                raise RuntimeError(
                    f"data parallel training: expected {self.count} processes (WORLD_SIZE), got "
                    f"{found}. Start with `torchrun --nproc-per-node={self.count}`, and unset "
                    "WORLD_SIZE for a run of one process."
                )
            atexit.register(_leave)
        elif self.launched.zero is not None and self.launched.zero.optimizer_device == "cpu":
            raise ValueError(
                "accelerate: offload_optimizer_device: cpu is for several processes, and this is "
                "one. Set it to none, or num_processes to 2 or more."
            )

    @cached_property
    def _accelerator(self) -> Any:
        accelerate = require("accelerate", "distributed", "training in several processes")
        return accelerate.Accelerator(cpu=self.on_cpu)

    @property
    def is_first(self) -> bool:
        """Return True for the process that writes logs and files."""
        return self.rank == 0

    def sum(self, tensor: Tensor) -> Tensor:
        """The sum over all processes of equally shaped tensors."""
        if self.count == 1:
            return tensor
        total: Tensor = self._accelerator.reduce(tensor, reduction="sum")
        return total

    def sums(self, *numbers: float) -> list[float]:
        """The sums over all processes of a few numbers."""
        if self.count == 1:
            return list(numbers)
        device = self._accelerator.device
        total: list[float] = self.sum(
            torch.tensor(numbers, dtype=torch.float64, device=device)
        ).tolist()
        return total

    def sums_by_name(self, numbers: Mapping[str, float]) -> dict[str, float]:
        """The sums over all processes of numbers by name; a process may have none of a name."""
        totals: dict[str, float] = {}
        for part in self.gather(dict(numbers)):
            for name, number in part.items():
                totals[name] = totals.get(name, 0.0) + number
        return totals

    def sum_gradients(self, parameters: Iterable[Tensor]) -> None:
        """Replace each gradient by its sum over all processes; where none has one, there is none.

        A gradient of zeros would let an optimizer's momentum move what a loss does not reach.
        """
        if self.count == 1:
            return
        trained = [p for p in parameters if p.requires_grad]
        held = trained[0].new_tensor([p.grad is not None for p in trained])
        grads = [torch.zeros_like(p) if p.grad is None else p.grad for p in trained]
        total = self.sum(torch.cat([held, *(grad.flatten() for grad in grads)]))
        parts = total[len(trained) :].split([p.numel() for p in trained])
        for p, part, count in zip(trained, parts, total[: len(trained)].tolist(), strict=True):
            p.grad = part.view_as(p) if count else None

    def agree(self, parameters: Iterable[Tensor]) -> None:
        """Give all processes the first one's parameters."""
        if self.count > 1:
            for p in parameters:
                p.data = self.sum(p.data if self.is_first else torch.zeros_like(p.data))

    def gather(self, value: Any) -> list[Any]:
        """The objects of all processes, by rank; they are pickled."""
        if self.count == 1:
            return [value]
        gathered: list[Any] = require("accelerate", "distributed", "").utils.gather_object([value])
        return gathered

    @property
    def sharded(self) -> bool:
        """Return True if gradients and optimizer state, or weights too, lie in shares."""
        return self.count > 1 and (self.launched.sharded or self.launched.zero is not None)

    def max(self, number: int) -> int:
        """The greatest of the processes' numbers."""
        return max(self.gather(number))

    def wait(self) -> None:
        """Go on when all have come here."""
        if self.count > 1:
            self._accelerator.wait_for_everyone()


def _leave() -> None:
    """Part from the other processes in order, as PyTorch asks."""
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()
