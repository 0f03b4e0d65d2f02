"""Table of the rewards of language: the part `rewards:` of envs_registry.yaml."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from dialgym.io.registry_file import read_registry


@dataclass(frozen=True)
class RewardRow:
    """A reward: its class, and settings of it."""

    name: str
    reward: str
    description: str
    settings: Mapping[str, Any] = field(default_factory=dict)


@cache
def reward_rows() -> Mapping[str, RewardRow]:
    """The rewards of language by name, in the order of the registry."""
    rows = read_registry().get("rewards") or {}
    return {name: RewardRow(name, **values) for name, values in rows.items()}
