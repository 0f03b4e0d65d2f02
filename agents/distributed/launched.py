"""Reads the FSDP and DeepSpeed settings of `accelerate launch`, and refuses those unsupported here.

The update is our own, so of DeepSpeed's and FSDP's settings those are taken that do not change what
is learned; the learner decides the rest, and says so where a file says otherwise.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from dialgym.errors import unknown
from dialgym.optional import require

PRECISIONS = {None: None, "no": None, "bf16": "bf16", "fp16": "fp16"}
LAUNCHER_FIELDS = (
    "deepspeed_config_file",
    "deepspeed_hostfile",
    "deepspeed_exclusion_filter",
    "deepspeed_inclusion_filter",
    "deepspeed_multinode_launcher",
    "mixed_precision",
)
"""Of `deepspeed_config` in a file for accelerate: those that its plugin does not read."""
FLOAT32 = "weights are float32; give the learner compute={'autocast': 'bf16'}"
REFUSED: Mapping[str, str] = {
    "optimizer": "the learner brings its own (policy_kwargs: optimizer_class, optimizer_kwargs)",
    "scheduler": "learning_rate of the learner may be a schedule",
    "activation_checkpointing": (
        "policy_kwargs={'execution': {'gradient_checkpointing': True}} is for that"
    ),
}
"""Sections of DeepSpeed's file that the learner decides, and where it does."""
ENGINE_KEYS = ("steps_per_print", "wall_clock_breakdown")
"""Of its log: handed on to DeepSpeed as they are."""
LEARNER_KEYS = (
    "train_batch_size",
    "train_micro_batch_size_per_gpu",
    "gradient_accumulation_steps",
    "gradient_clipping",
)
KNOWN_KEYS = (*ENGINE_KEYS, *LEARNER_KEYS, *REFUSED, "bf16", "fp16", "zero_optimization")


@dataclass(frozen=True)
class Launched:
    """Settings by which the processes of a run share their work; all defaults without a launcher.

    Attributes:
        sharded: weights, gradients and optimizer state are sharded (`distributed_type: FSDP`).
        reshard: of those, weights are gathered again for the backward pass
            (`fsdp_reshard_after_forward`).
        zero: DeepSpeed's engine shards gradients and optimizer state
            (`distributed_type: DEEPSPEED`).
        precision: what `mixed_precision` says, as `autocast` names it.
    """

    sharded: bool = False
    reshard: bool = True
    zero: ZeroConfig | None = None
    precision: str | None = None

    @classmethod
    def read(cls) -> Launched:
        """The settings in force, from the environment variables that the launcher sets.

        Raises:
            ValueError: something that our update cannot do.
            ImportError: `accelerate` is not installed.
        """
        name = os.environ.get("ACCELERATE_MIXED_PRECISION")
        if name not in PRECISIONS:
            raise _refusal(f"mixed_precision: {name}", "choose no, bf16 or fp16")
        precision = PRECISIONS[name]
        if _is_on("ACCELERATE_USE_DEEPSPEED"):
            if precision == "fp16":
                raise _refusal("mixed_precision: fp16 with DeepSpeed", "choose bf16 or no")
            return cls(zero=ZeroConfig.read(), precision=precision)
        if _is_on("ACCELERATE_USE_FSDP"):
            return cls(sharded=True, reshard=_read_fsdp(), precision=precision)
        return cls(precision=precision)

    def check_precision(self, autocast: str | None) -> None:
        """Raises ValueError where the launcher says one precision and the learner another."""
        if self.precision not in (None, autocast):
            raise ValueError(
                f"accelerate: mixed_precision: {self.precision} has no effect by itself, and "
                f"autocast is {autocast!r}. Give the learner "
                f"compute={{'autocast': {self.precision!r}}}, or set mixed_precision: 'no'"
            )


@dataclass(frozen=True)
class ZeroConfig:
    """DeepSpeed's configuration, without what is left to us ("auto").

    Attributes:
        given: as DeepSpeed's own file has it.

    Raises:
        ValueError: a key that is unknown, or asks for what is unavailable here.
    """

    given: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for key in self.given:
            if key in REFUSED:
                raise _refusal(f"deepspeed_config: {key}", REFUSED[key])
            if key not in KNOWN_KEYS:
                raise unknown("key", key, KNOWN_KEYS, "DeepSpeed's configuration")
        for key in ("bf16", "fp16"):
            if self.given.get(key, {}).get("enabled", False):
                raise _refusal(f"deepspeed_config: {key}", FLOAT32)
        stage, offload = self.zero["stage"], self.zero.get("offload_param", {}).get("device")
        if stage not in (1, 2):
            raise _refusal(
                f"zero_stage: {stage}",
                "choose 1 or 2; stage 3 is fsdp.yaml of agents/configs/accelerate, 0 is ddp.yaml",
            )
        if offload not in (None, "none"):
            raise _refusal(f"offload_param_device: {offload}", "it needs stage 3; set it to none")
        if self.optimizer_device not in ("none", "cpu"):
            raise _refusal(
                f"offload_optimizer_device: {self.optimizer_device}", "choose none or cpu"
            )

    @classmethod
    def read(cls) -> ZeroConfig:
        """The configuration from the launcher's variables, or from DeepSpeed's own file.

        Raises:
            ValueError: an unknown field, a file that cannot be read, or what is unavailable.
        """
        accelerate = require("accelerate", "distributed", "distributed_type: DEEPSPEED")
        plugin = accelerate.DeepSpeedPlugin
        known = [*LAUNCHER_FIELDS, *(each.name for each in fields(plugin)), "zero3_init_flag"]
        for name in filter(None, os.environ.get("ACCELERATE_CONFIG_DS_FIELDS", "").split(",")):
            if name not in known:
                raise unknown("key", name, known, "deepspeed_config of the file for accelerate")
        try:
            return cls(_without_auto(plugin().deepspeed_config))
        except (AttributeError, TypeError, ValueError, OSError) as error:
            if "is not supported here" in str(error) or "unknown key" in str(error):
                raise
            raise ValueError(
                f"accelerate: deepspeed_config cannot be read: {error}. See "
                "agents/configs/accelerate/deepspeed_zero2.yaml for one that can."
            ) from error

    @property
    def zero(self) -> dict[str, Any]:
        """The section `zero_optimization` of DeepSpeed's configuration."""
        return {"stage": 2, **self.given.get("zero_optimization", {})}

    @property
    def optimizer_device(self) -> str:
        """The place of the optimizer's state: "none" (with the weights) or "cpu"."""
        return str(self.zero.get("offload_optimizer", {}).get("device", "none"))

    def check_learner(
        self, batch_size: int, processes: int, max_grad_norm: float, target_kl: float | None
    ) -> None:
        """Raises ValueError where DeepSpeed is told otherwise than the learner."""
        ours = {
            "train_batch_size": (batch_size * processes, "batch_size times the processes"),
            "train_micro_batch_size_per_gpu": (batch_size, "batch_size"),
            "gradient_accumulation_steps": (1, "minibatches; micro_batch_tokens divides them"),
            "gradient_clipping": (max_grad_norm, "max_grad_norm"),
        }
        for key, (value, name) in ours.items():
            if self.given.get(key, value) != value:
                raise ValueError(
                    f"DeepSpeed: expected {key} to be {value}, as the learner has it ({name}), got "
                    f"{self.given[key]}. Leave it out, or change the learner."
                )
        if self.optimizer_device == "cpu" and target_kl is not None:
            raise ValueError(
                "DeepSpeed: with offload_optimizer_device: cpu a gradient cannot be given up, as "
                "target_kl may want. Set target_kl to null, or offload_optimizer_device to none."
            )

    def for_engine(self, batch_size: int, max_grad_norm: float) -> dict[str, Any]:
        """The configuration for DeepSpeed, which checks the rest of `zero_optimization` itself."""
        return {
            **{key: self.given[key] for key in ENGINE_KEYS if key in self.given},
            "train_micro_batch_size_per_gpu": batch_size,
            "gradient_accumulation_steps": 1,
            "gradient_clipping": max_grad_norm,
            "zero_allow_untested_optimizer": True,
            "zero_force_ds_cpu_optimizer": False,
            "zero_optimization": self.zero,
        }


def _read_fsdp() -> bool:
    """`fsdp_reshard_after_forward`; raises ValueError for what our update cannot do."""
    accelerate = require("accelerate", "distributed", "distributed_type: FSDP")
    from torch.distributed.fsdp import CPUOffloadPolicy

    plugin = accelerate.FullyShardedDataParallelPlugin()
    if plugin.fsdp_version != 2:
        raise _refusal(f"fsdp_version: {plugin.fsdp_version}", "set fsdp_version: 2")
    if isinstance(plugin.cpu_offload, CPUOffloadPolicy):
        raise _refusal("fsdp_offload_params: true", "set it to false")
    if plugin.activation_checkpointing:
        raise _refusal(
            "fsdp_activation_checkpointing: true",
            "set it to false, and policy_kwargs={'execution': {'gradient_checkpointing': True}}",
        )
    return bool(plugin.reshard_after_forward)


def _without_auto(config: Mapping[str, Any]) -> dict[str, Any]:
    """The configuration without values that are "auto", unset, or infinite."""
    return {
        key: _without_auto(value) if isinstance(value, Mapping) else value
        for key, value in config.items()
        if value not in ("auto", None, float("inf"))
    }


def _is_on(name: str) -> bool:
    return os.environ.get(name, "false").lower() in ("1", "true", "yes")


def _refusal(what: str, remedy: str) -> ValueError:
    return ValueError(f"accelerate: {what} is not supported here: {remedy}.")
