"""Gradient steps on a policy: precision, micro-batches, processes, clipping and finite checks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.amp import GradScaler
from torch.nn.utils import clip_grad_norm_

from agents.distributed.processes import Processes
from agents.distributed.sharding import Sharding
from agents.storage.values import storable
from dialgym.errors import one_of

AUTOCAST = {"bf16": torch.bfloat16, "fp16": torch.float16}
CPU_TOKENS, GPU_TOKENS = 4096, 65536
REMEDY = (
    "Lower the learning rate or max_grad_norm, or compute in float32 (autocast: null); --resume "
    "goes on from the last checkpoint, which is as it was."
)
Where = str | Callable[[], str]
"""Learner and time, for errors, or a function that gives them."""
LEAST_SCALE = 1.0
"""A gradient that is not finite at this scale of the loss is no matter of float16's range."""

Loss = Callable[[Any], tuple[Tensor, dict[str, Tensor]]]
"""From a batch to the losses (n,) of its decisions, and metrics (n,) to be averaged and logged."""


@storable
@dataclass(frozen=True)
class Compute:
    """Precision of an update, and how much it computes at once.

    Attributes:
        autocast: "bf16" computes in bfloat16 where that is safe, "fp16" in float16 with a scaled
            loss; None in float32.
        micro_batch_tokens: most tokens of one forward, padding included. The gradient of a
            minibatch is accumulated over as many forwards as it takes. None is 4,096 on a CPU and
            65,536 on a GPU.

    Raises:
        ValueError: an unknown precision, or fewer tokens than 1.
    """

    autocast: str | None = None
    micro_batch_tokens: int | None = None

    def __post_init__(self) -> None:
        one_of("autocast", self.autocast, [None, *AUTOCAST], "compute")
        if self.micro_batch_tokens is not None and self.micro_batch_tokens < 1:
            raise ValueError(
                "compute: micro_batch_tokens must be at least 1 or None, got "
                f"{self.micro_batch_tokens}"
            )

    def precision(self, device: torch.device) -> AbstractContextManager[Any]:
        """A context in which forwards compute as `autocast` says."""
        if self.autocast is None:
            return nullcontext()
        return torch.autocast(device.type, AUTOCAST[self.autocast])

    def tokens(self, device: torch.device) -> int:
        """Most tokens of one forward on the device."""
        return self.micro_batch_tokens or (CPU_TOKENS if device.type == "cpu" else GPU_TOKENS)

    def as_dict(self) -> dict[str, Any]:
        """As YAML and JSON spell it."""
        return asdict(self)


class Updater:
    """Takes gradient steps on a policy, alone or together with other processes.

    An update is `backward`, which accumulates the gradient of a minibatch, and then `step`; between
    the two an algorithm may look at the metrics and give the gradient up:

        metrics = updater.backward(self.loss, batches, count)
        metrics |= updater.step()

    In float16 the loss is scaled, so that small gradients do not vanish; a step whose gradient
    overflows is skipped, and the scale halved (Micikevicius et al. 2018, section 3.2).

    Args:
        policy: has an `optimizer`.
        processes: those that train together.
        compute: precision and memory.
        max_grad_norm: the gradient is clipped to this norm.
        where: says learner and time, for errors.

    Attributes:
        scaler: of the loss; it does nothing but in float16.
        sharding: how processes share weights, gradients or optimizer state; None where each has
            all of them.

    Raises:
        ValueError: the launcher and the learner want different precisions.
    """

    def __init__(
        self,
        policy: Any,
        processes: Processes,
        compute: Compute,
        max_grad_norm: float,
        where: Callable[[], str],
    ) -> None:
        processes.launched.check_precision(compute.autocast)
        self.policy, self.processes, self.compute = policy, processes, compute
        self.max_grad_norm, self.where = max_grad_norm, where
        self.device: torch.device = policy.device
        self.scaler = GradScaler(self.device.type, enabled=compute.autocast == "fp16")
        self.sharding: Sharding | None = None

    @property
    def most_tokens(self) -> int:
        """Most tokens of one forward."""
        return self.compute.tokens(self.device)

    def precision(self) -> AbstractContextManager[Any]:
        """A context for forwards outside of `backward`, which has it already."""
        return self.compute.precision(self.device)

    # A gradient step

    def backward(
        self,
        loss: Loss,
        batches: Iterable[Any],
        count: int,
        spare: Callable[[], Any] | None = None,
    ) -> dict[str, float]:
        """Accumulate the gradient of the mean loss of a minibatch.

        Args:
            loss: of one batch, computed in the precision asked for.
            batches: the minibatch, in pieces that fit in memory; one of several processes may have
                none.
            count: decisions of this process's batches; the sum of losses is divided by that of all
                processes.
            spare: gives a batch to read for nothing, for processes that share weights and have to
                read in step.

        Returns:
            Means over the decisions of all processes, "loss" among them.

        Raises:
            FloatingPointError: the loss is not finite.
        """
        self.policy.optimizer.zero_grad()
        [total] = self.processes.sums(float(count))
        total = max(total, 1.0)
        names, sums = ["loss"], list[Tensor]()
        for batch, weight, last in self._in_step(batches, spare):
            with self.precision():
                losses, metrics = loss(batch)
            self._backward(weight * losses.sum() / total, last)
            names = ["loss", *metrics]
            sums.append(weight * _sums([losses, *metrics.values()]))
        if self.sharding is None:  # which has summed them already
            self.processes.sum_gradients(self.policy.parameters())
        own = torch.stack(sums).sum(0).tolist() if sums else []  # one process waits here alone
        means = self.processes.sums_by_name(dict(zip(names, own)))
        means = {name: value / total for name, value in means.items()}
        check_number("loss", means.get("loss", 0.0), self.where)
        return means

    def _backward(self, loss: Tensor, last: bool) -> None:
        if self.sharding is None:
            self.scaler.scale(loss).backward()
        else:
            self.sharding.backward(loss, last)

    def _in_step(
        self, batches: Iterable[Any], spare: Callable[[], Any] | None
    ) -> Iterator[tuple[Any, float, bool]]:
        """Batches, what each counts, and with shared weights whether it is the last.

        Processes that share weights read in step: one that has less reads something for nothing.
        """
        if self.sharding is None:
            yield from ((batch, 1.0, False) for batch in batches)
            return
        own = [(batch, 1.0) for batch in batches]
        count = self.processes.max(len(own))
        if spare is not None:
            own += [(spare(), 0.0) for _ in range(count - len(own))]
        yield from ((*each, number == count) for number, each in enumerate(own, 1))

    def step(self) -> dict[str, float]:
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
            check_number("gradient", norm, self.where)
        self.scaler.step(optimizer)
        self.scaler.update()
        if not self.scaler.is_enabled():
            return {"grad_norm": norm}
        skipped = not np.isfinite(norm)
        metrics = {"skipped_steps": float(skipped), "loss_scale": scale}
        return metrics if skipped else {**metrics, "grad_norm": norm}

    def _clip(self) -> float:
        """Clip the gradient; its norm before."""
        if self.sharding is not None:
            return self.sharding.clip(self.max_grad_norm)
        return float(clip_grad_norm_(self.policy.parameters(), self.max_grad_norm))

    # Saving

    def state_dict(self) -> dict[str, Any]:
        """Numbers that a resumed run needs beside weights and optimizer."""
        return {"scaler": self.scaler.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a result of `state_dict`, possibly on another device."""
        if state["scaler"] and self.scaler.is_enabled():
            self.scaler.load_state_dict(state["scaler"])

    def check_weights(self) -> None:
        """Raises FloatingPointError for weights that have overflowed: call it before saving."""
        check_weights(self.policy, self.where)

    # Sharding

    def shard(self, batch_size: int, target_kl: float | None) -> None:
        """Share the policy with the other processes, as the launcher was asked to.

        Raises:
            ValueError: something that cannot be done with shared weights.
        """
        self._check_sharding()
        launched, count = self.processes.launched, self.processes.count
        if launched.zero is None:
            from agents.distributed.fsdp import FSDPSharding  # a second of imports

            self.sharding = FSDPSharding(self.policy, count, launched.reshard)
            return
        from agents.distributed.deepspeed import DeepSpeedSharding

        launched.zero.check_learner(batch_size, count, self.max_grad_norm, target_kl)
        config = launched.zero.for_engine(batch_size, self.max_grad_norm)
        self.sharding = DeepSpeedSharding(self.policy, self.processes, config, self.precision)

    def _check_sharding(self) -> None:
        given = {
            "autocast: fp16": self.compute.autocast == "fp16",
            "compile": self.policy.execution.compile,
        }
        for name, on in given.items():
            if on:
                raise ValueError(
                    f"{self.where()}: {name} is unavailable with sharded weights (accelerate, "
                    "distributed_type: FSDP or DEEPSPEED); leave it out, or use MULTI_GPU"
                )

    @contextmanager
    def improving(self) -> Iterator[None]:
        """Shard the weights within the block, where processes share them."""
        if self.sharding is None:
            yield
            return
        self.sharding.scatter()
        yield
        self.sharding.gather()

    def unshard(self, new_policy: Callable[[], Any]) -> Any:
        """Give an ordinary policy the weights and optimizer state that were shared.

        Args:
            new_policy: makes one like that at hand.

        Returns:
            The policy to go on with.
        """
        assert self.sharding is not None
        self.sharding.gather_optimizer()
        state = self.sharding.state()
        with torch.random.fork_rng(range(torch.cuda.device_count())):  # new weights draw from it
            plain = new_policy().to(self.device)
        plain.load_state_dict(state["policy"])
        plain.optimizer.load_state_dict(state["policy.optimizer"])
        self.sharding.leave()
        self.policy, self.sharding = plain, None
        return plain


def _sums(values: Iterable[Tensor]) -> Tensor:
    return torch.stack([value.detach().sum(dtype=torch.float32) for value in values]).double()


# Finite checks


def check_rewards(rewards: np.ndarray, where: Where) -> None:
    """Raises FloatingPointError unless rewards (n_envs,) are finite.

    `where` is the learner and the time.
    """
    finite = np.isfinite(rewards)
    if not finite.all():
        row = int(np.flatnonzero(~finite)[0])
        raise FloatingPointError(
            f"{_text(where)}: expected finite rewards, got {rewards[row]} in dialogue {row}. "
            "Nothing was learned from it. Look for the reward that gave it, or its settings; "
            "--resume goes on from the last checkpoint."
        )


def check_number(what: str, value: float, where: Where) -> None:
    """Raises FloatingPointError unless a loss or a norm is finite."""
    if not math.isfinite(value):
        raise FloatingPointError(
            f"{_text(where)}: expected a finite {what}, got {value}; the weights were left as "
            f"they were. {REMEDY}"
        )


def check_tensor(what: str, values: torch.Tensor, where: Where) -> None:
    """Raises FloatingPointError unless all numbers of a tensor are finite; see `check_number`."""
    finite = values.isfinite()
    if not finite.all():
        check_number(what, float(values[~finite][0]), where)


def check_weights(module: Any, where: Where) -> None:
    """Raises FloatingPointError unless all weights are finite.

    Args:
        module: anything with `named_parameters`.
        where: learner and time.
    """
    for name, weight in module.named_parameters():
        if not bool(torch.isfinite(weight).all()):
            raise FloatingPointError(
                f"{_text(where)}: expected finite weights, but {name} has overflowed, so nothing "
                f"was saved. {REMEDY}"
            )


def _text(where: Where) -> str:
    return where if isinstance(where, str) else where()
