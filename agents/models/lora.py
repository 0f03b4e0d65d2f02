"""Low-rank adapters (Hu et al. 2021) on a backbone, through `peft`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import nn

from dialgym.errors import finite_number, unknown, whole_number
from dialgym.optional import require

DEFAULTS: dict[str, Any] = {"r": 8, "alpha": 16, "dropout": 0.0, "target_modules": None}


def add_lora(backbone: nn.Module, settings: Mapping[str, Any]) -> None:
    """Put adapters beside linear maps of `backbone`, in place, and freeze all else in it.

    Each map W x becomes W x + (alpha / r) B A x, with A of r rows and B zero at first: the model
    starts as it was.

    Args:
        backbone: any module.
        settings: `r` (8), `alpha` (16), and `target_modules` (None): the names of the linear maps,
            all of them when None. `dropout` must be 0: under PPO it would make the new policy
            differ from the old one before any update.

    Raises:
        ValueError: an unknown setting, a number that cannot be, dropout, or names that are no
            linear maps.
        ImportError: `peft` is not installed.
    """
    chosen = _checked(settings)
    maps = linear_maps(backbone)
    targets = sorted(maps) if chosen["target_modules"] is None else list(chosen["target_modules"])
    for name in targets:
        if name not in maps:
            raise unknown("target module", name, maps, "lora")
    peft = require("peft", "agents", "lora")
    config = peft.LoraConfig(
        r=chosen["r"],
        lora_alpha=chosen["alpha"],
        lora_dropout=0.0,
        target_modules=targets,
        fan_in_fan_out=any(_is_transposed(module) for module in backbone.modules()),
    )
    from agents.models.adapted_linear import AdaptedLinear

    config._register_custom_module({nn.Linear: AdaptedLinear})
    backbone.requires_grad_(False)
    peft.inject_adapter_in_model(config, backbone)


def linear_maps(backbone: nn.Module) -> set[str]:
    """The names of linear maps, each without the path to it."""
    return {
        name.rpartition(".")[2]
        for name, module in backbone.named_modules()
        if isinstance(module, nn.Linear) or _is_transposed(module)
    }


def _is_transposed(module: nn.Module) -> bool:
    """GPT-2 of `transformers` keeps its matrices in a class of its own."""
    return type(module).__name__ == "Conv1D"


def _checked(settings: Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(settings, Mapping):
        raise ValueError(f"lora: expected a mapping such as {{'r': 8}}, got {settings!r}")
    for name in settings:
        if name not in DEFAULTS:
            raise unknown("setting", name, DEFAULTS, "lora")
    chosen = {**DEFAULTS, **settings}
    whole_number("r", chosen["r"], "lora")
    if finite_number("alpha of lora", chosen["alpha"]) <= 0:
        raise ValueError(f"lora: expected an alpha above 0, got {chosen['alpha']}")
    if isinstance(chosen["target_modules"], str):
        raise ValueError(
            f"lora: expected target_modules as a list of names, got {chosen['target_modules']!r}"
        )
    if chosen["dropout"] != 0:
        raise ValueError(
            f"lora: expected dropout 0, got {chosen['dropout']}; with dropout the new policy would "
            "differ from the old one before any update"
        )
    return chosen
