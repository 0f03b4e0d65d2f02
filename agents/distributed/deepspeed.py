"""Learning through DeepSpeed's engine: ZeRO's stages 1 and 2 (Rajbhandari et al. 2020).

Each process keeps the optimizer's state of its part of the weights, on the CPU where that is asked
for, steps that part and gathers the others'; in stage 2 it keeps gradients of its part alone. All
weights stay in every process, so that rollouts and files are those of unshared training.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from copy import deepcopy
from typing import Any

import torch
from torch import Tensor, nn

from agents.distributed.processes import Processes
from agents.distributed.sharding import Sharding, new_optimizer, trained_by
from dialgym.optional import require


class DeepSpeedSharding(Sharding):
    """A policy whose optimizer is DeepSpeed's.

    Args:
        policy: a GPT policy; its optimizer is replaced, and its updates read through the engine.
        processes: those that train together.
        config: DeepSpeed's (`ZeroConfig.for_engine`).
        precision: in which the policy reads; the engine would switch it off.
    """

    def __init__(
        self,
        policy: Any,
        processes: Processes,
        config: Mapping[str, Any],
        precision: Callable[[], AbstractContextManager[Any]],
    ) -> None:
        super().__init__(policy)
        self.processes = processes
        deepspeed = require("deepspeed", "deepspeed", "distributed_type: DEEPSPEED")
        old = policy.optimizer.state_dict()["state"]
        self.engine, policy.optimizer, _, _ = deepspeed.initialize(
            model=_Reader(policy, precision), optimizer=new_optimizer(policy), config=dict(config)
        )
        self.read = policy.evaluate_sequences
        policy.evaluate_sequences = self._read
        if old:
            self._set_state(old)

    def _read(self, *args: Any) -> Any:
        return self.engine(*args) if torch.is_grad_enabled() else self.read(*args)

    def backward(self, loss: Tensor, last: bool) -> None:
        """Accumulate gradients; the engine, which averages them, is made to add them up."""
        self.engine.set_gradient_accumulation_boundary(last)
        self.engine.backward(loss * self.processes.count, scale_wrt_gas=False)

    def clip(self, max_norm: float) -> float:
        """The norm of the gradient, which the optimizer's step is going to clip."""
        norm = float(self.policy.optimizer.scaled_global_norm())
        return norm if norm >= 0 else math.inf  # DeepSpeed's sign of an infinite one

    def gather(self) -> None:
        """Tell caches of the weights that DeepSpeed has changed behind PyTorch's back."""
        for p in trained_by(self.policy):
            torch.autograd.graph.increment_version(p)

    def leave(self) -> None:
        """Take the engine's hooks away."""
        self.engine.destroy()

    # The optimizer's state: ours is that of one flat part of all weights

    @property
    def _flat(self) -> Tensor:
        flat: Tensor = self.policy.optimizer.param_groups[0]["params"][0]
        return flat

    @property
    def _own(self) -> dict[str, Any]:
        own: dict[str, Any] = self.policy.optimizer.state[self._flat]
        return own

    def _groups(self) -> list[dict[str, Any]]:
        group = self.policy.optimizer.param_groups[0]
        return [{**group, "params": list(range(len(trained_by(self.policy))))}]

    def _pieces(self) -> Iterator[tuple[int, slice, slice]]:
        """Numbers of the weights that we have of, where in the weight, and where in our part."""
        for number, p in enumerate(trained_by(self.policy)):
            piece = p._hp_mapping
            if piece is not None:
                yield number, _span(piece.lp_fragment_address), _span(piece.hp_fragment_address)

    def _set_state(self, whole: Mapping[int, Mapping[str, Any]]) -> None:
        for name, value in whole[0].items():
            if not _is_of(value, trained_by(self.policy)[0]):
                self._own[name] = deepcopy(value)  # a step, which counts in place
                continue
            self._own[name] = torch.zeros_like(self._flat)
            for number, there, here in self._pieces():
                self._own[name][here] = whole[number][name].flatten()[there].to(self._flat)

    def _whole_state(self) -> dict[int, dict[str, Any]]:
        weights, own = trained_by(self.policy), dict(self._own)
        state: dict[int, dict[str, Any]] = {n: {} for n in range(len(weights)) if own}
        for name, value in own.items():
            if not _is_of(value, self._flat):
                for values in state.values():
                    values[name] = deepcopy(value)
                continue
            parts = [torch.zeros_like(p).flatten() for p in weights]
            for number, there, here in self._pieces():
                parts[number][there] = value[here].to(parts[number])
            for number, part in enumerate(parts):
                state[number][name] = self.processes.sum(part).view_as(weights[number])
        return state


class _Reader(nn.Module):
    """The policy as the engine wants it, with what an update reads as its forward."""

    def __init__(self, policy: Any, precision: Callable[[], AbstractContextManager[Any]]) -> None:
        super().__init__()
        self.policy, self.precision, self.read = policy, precision, policy.evaluate_sequences

    def forward(self, *args: Any) -> Any:
        with self.precision():
            return self.read(*args)


def _span(address: Any) -> slice:
    return slice(address.start, address.start + address.numel)


def _is_of(value: Any, weight: Tensor) -> bool:
    """Return True if a part of the state has a number for each of a weight's."""
    return isinstance(value, Tensor) and value.shape == weight.shape
