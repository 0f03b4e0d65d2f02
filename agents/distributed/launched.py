"""What `accelerate launch` was asked for, by the environment variables that it sets."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from agents.distributed.deepspeed_config import ZeroConfig, read_zero

PRECISIONS = {None: None, "no": None, "bf16": "bf16", "fp16": "fp16"}


@dataclass(frozen=True)
class Launched:
    """How the processes of a run share their work; without `accelerate launch`, all of it.

    Attributes:
        sharded: weights, gradients and optimizer state lie in shares (`distributed_type: FSDP`).
        reshard: of those, weights are gathered again for the backward pass
            (`fsdp_reshard_after_forward`).
        zero: DeepSpeed's engine shares gradients and optimizer state
            (`distributed_type: DEEPSPEED`).
        precision: what `mixed_precision` says, as `autocast` names it.
    """

    sharded: bool = False
    reshard: bool = True
    zero: ZeroConfig | None = None
    precision: str | None = None

    @classmethod
    def read(cls, environ: Mapping[str, str] = os.environ) -> Launched:
        """The settings in force.

        Raises:
            ValueError: something that our update cannot do.
        """
        precision = environ.get("ACCELERATE_MIXED_PRECISION")
        if precision not in PRECISIONS:
            raise _refusal(f"mixed_precision: {precision}", "choose no, bf16 or fp16")
        if _is_on(environ, "ACCELERATE_USE_DEEPSPEED"):
            if precision == "fp16":
                raise _refusal("mixed_precision: fp16 with DeepSpeed", "choose bf16 or no")
            return cls(zero=read_zero(environ), precision=PRECISIONS[precision])
        if not _is_on(environ, "ACCELERATE_USE_FSDP"):
            return cls(precision=PRECISIONS[precision])
        _check_fsdp(environ)
        reshard = _is_on(environ, "FSDP_RESHARD_AFTER_FORWARD", "true")
        return cls(sharded=True, reshard=reshard, precision=PRECISIONS[precision])

    def check_precision(self, autocast: str | None) -> None:
        """Raises ValueError where the launcher says one precision and the learner another."""
        if self.precision not in (None, autocast):
            raise ValueError(
                f"accelerate: mixed_precision: {self.precision} has no effect by itself, and "
                f"autocast is {autocast!r}. Give the learner autocast={self.precision!r} "
                f"(--param autocast={self.precision}), or set mixed_precision: 'no'"
            )


def _check_fsdp(environ: Mapping[str, str]) -> None:
    if environ.get("FSDP_VERSION", "2") != "2":
        raise _refusal(f"fsdp_version: {environ['FSDP_VERSION']}", "set fsdp_version: 2")
    if _is_on(environ, "FSDP_OFFLOAD_PARAMS"):
        raise _refusal("fsdp_offload_params: true", "set it to false")
    if _is_on(environ, "FSDP_ACTIVATION_CHECKPOINTING"):
        raise _refusal(
            "fsdp_activation_checkpointing: true",
            "set it to false, and policy_kwargs={'gradient_checkpointing': True}",
        )


def _is_on(environ: Mapping[str, str], name: str, default: str = "false") -> bool:
    return environ.get(name, default).lower() in ("1", "true", "yes")


def _refusal(what: str, remedy: str) -> ValueError:
    return ValueError(f"accelerate: {what} is not supported here: {remedy}.")
