"""What DeepSpeed may be asked for: keys, values, and what the learner itself decides."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dialgym.errors import unknown

FIELDS = (
    "deepspeed_config_file",
    "deepspeed_multinode_launcher",
    "deepspeed_hostfile",
    "deepspeed_inclusion_filter",
    "deepspeed_exclusion_filter",
    "gradient_accumulation_steps",
    "gradient_clipping",
    "mixed_precision",
    "offload_optimizer_device",
    "offload_param_device",
    "zero3_init_flag",
    "zero3_save_16bit_model",
    "zero_stage",
)
"""Of `deepspeed_config` in a file for `accelerate launch`."""
COUNT, NUMBER, SWITCH = "a whole number from 1", "a number above 0", "true or false"
NO = "false"
SCHEMA: Mapping[str, Any] = {
    "train_batch_size": COUNT,
    "train_micro_batch_size_per_gpu": COUNT,
    "gradient_accumulation_steps": COUNT,
    "gradient_clipping": NUMBER,
    "steps_per_print": COUNT,
    "wall_clock_breakdown": SWITCH,
    "bf16": {"enabled": NO},
    "fp16": {"enabled": NO},
    "zero_optimization": {
        "stage": (1, 2),
        "offload_optimizer": {"device": ("none", "cpu"), "pin_memory": SWITCH},
        "offload_param": {"device": ("none",), "pin_memory": SWITCH},
        "allgather_partitions": SWITCH,
        "allgather_bucket_size": COUNT,
        "contiguous_gradients": SWITCH,
        "overlap_comm": SWITCH,
        "reduce_bucket_size": COUNT,
        "reduce_scatter": SWITCH,
        "round_robin_gradients": SWITCH,
    },
}
"""Of DeepSpeed's own file, and of what we make of the fields above."""
PRECISION = "weights are float32; give the learner autocast='bf16' (--param autocast=bf16)"
REMEDIES: Mapping[str, str] = {
    "optimizer": "the learner brings its own (policy_kwargs: optimizer_class, optimizer_kwargs)",
    "scheduler": "learning_rate of the learner may be a schedule",
    "activation_checkpointing": "policy_kwargs={'gradient_checkpointing': True} is for that",
    "stage": "stage 3 is fsdp.yaml of agents/configs/accelerate, and stage 0 is ddp.yaml",
    "bf16.enabled": PRECISION,
    "fp16.enabled": PRECISION,
    "offload_param.device": "it needs stage 3, and fsdp.yaml shares weights without offloading",
    "offload_optimizer.device": "the optimizer's state lies on the device, or on the CPU",
}
"""What to use for what cannot be had."""


@dataclass(frozen=True)
class ZeroConfig:
    """A checked DeepSpeed configuration.

    Attributes:
        given: what DeepSpeed's own file would say, without what is "auto".
    """

    given: Mapping[str, Any] = field(default_factory=dict)

    @property
    def zero(self) -> dict[str, Any]:
        """What DeepSpeed calls `zero_optimization`."""
        return {"stage": 2, **self.given.get("zero_optimization", {})}

    @property
    def offloads(self) -> bool:
        """Whether the optimizer's state lies on the CPU, and steps there."""
        return bool(self.zero.get("offload_optimizer", {}).get("device") == "cpu")

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
        if self.offloads and target_kl is not None:
            raise ValueError(
                "DeepSpeed: with offload_optimizer_device: cpu a gradient cannot be given up, as "
                "target_kl may want. Set target_kl to null, or offload_optimizer_device to none."
            )

    def for_engine(self, batch_size: int, max_grad_norm: float) -> dict[str, Any]:
        """What DeepSpeed is given."""
        return {
            **{
                k: self.given[k]
                for k in ("steps_per_print", "wall_clock_breakdown")
                if k in self.given
            },
            "train_micro_batch_size_per_gpu": batch_size,
            "gradient_accumulation_steps": 1,
            "gradient_clipping": max_grad_norm,
            "zero_allow_untested_optimizer": True,
            "zero_force_ds_cpu_optimizer": False,
            "zero_optimization": self.zero,
        }


def read_zero(environ: Mapping[str, str]) -> ZeroConfig:
    """What `accelerate launch` was asked for, by the variables that it sets.

    Raises:
        ValueError: an unknown key, or a value that cannot be.
    """
    where = "deepspeed_config of the file for accelerate"
    for name in filter(None, environ.get("ACCELERATE_CONFIG_DS_FIELDS", "").split(",")):
        if name not in FIELDS:
            raise unknown("key", name, FIELDS, where)
    path = environ.get("ACCELERATE_DEEPSPEED_CONFIG_FILE", "none")
    if path != "none":
        return checked(_read_json(Path(path)), path)
    return checked(_from_fields(environ), where)


def checked(config: Mapping[str, Any], where: str) -> ZeroConfig:
    """A configuration as DeepSpeed's own file has it. Raises ValueError, as `read_zero` does."""
    return ZeroConfig(_without_auto(_check(config, SCHEMA, where)))


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text("utf-8"))
    except (OSError, json.JSONDecodeError) as error:
        raise ValueError(f"deepspeed_config_file: cannot read {str(path)!r}: {error}") from error


def _from_fields(environ: Mapping[str, str]) -> dict[str, Any]:
    """DeepSpeed's configuration from the fields that accelerate passes on."""
    prefix = "ACCELERATE_DEEPSPEED_"
    devices = {
        name: {"device": environ.get(f"{prefix}{name.upper()}_DEVICE", "none")}
        for name in ("offload_optimizer", "offload_param")
    }
    stage = _number(environ.get(f"{prefix}ZERO_STAGE", "2"))
    config: dict[str, Any] = {"zero_optimization": {"stage": stage, **devices}}
    for key in ("gradient_accumulation_steps", "gradient_clipping"):
        if f"ACCELERATE_{key.upper()}" in environ:
            config[key] = _number(environ[f"ACCELERATE_{key.upper()}"])
    return config


def _number(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def _check(config: Any, schema: Mapping[str, Any], where: str, path: str = "") -> Mapping[str, Any]:
    if not isinstance(config, Mapping):
        raise ValueError(f"{where}: expected keys and values in {path or 'it'}, got {config!r}")
    for key, value in config.items():
        if key not in schema:
            if key in REMEDIES:
                raise ValueError(f"{where}: {key} is not supported here: {REMEDIES[key]}.")
            raise unknown("key", key, schema, f"{path} of {where}" if path else where)
        if isinstance(schema[key], Mapping):
            _check(value, schema[key], where, key)
        elif value != "auto" and not _fits(value, schema[key]):
            expected = schema[key]
            if isinstance(expected, tuple):
                expected = " or ".join(str(each) for each in expected)
            remedy = REMEDIES.get(f"{path}.{key}", REMEDIES.get(key))
            hint = f": {remedy}" if remedy else ""
            raise ValueError(f"{where}: {key} must be {expected}, got {value!r}{hint}.")
    return config


def _fits(value: Any, kind: Any) -> bool:
    if isinstance(kind, tuple):
        return value in kind and not isinstance(value, bool)
    if kind in (SWITCH, NO):
        return value is False or (value is True and kind == SWITCH)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return value > 0 and (kind == NUMBER or isinstance(value, int))


def _without_auto(config: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: _without_auto(value) if isinstance(value, Mapping) else value
        for key, value in config.items()
        if value != "auto"
    }
