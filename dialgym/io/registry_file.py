"""envs_registry.yaml as plain values."""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml


@cache
def read_registry() -> Mapping[str, Any]:
    """Read envs_registry.yaml of the installed package, else of the source tree."""
    inside = files("dialgym") / "envs_registry.yaml"
    path = inside if inside.is_file() else Path(__file__).parents[2] / "envs_registry.yaml"
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return yaml.load(path.read_text("utf-8"), Loader=loader)
