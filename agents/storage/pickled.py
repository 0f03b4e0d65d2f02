"""Models that Stable-Baselines3 itself wrote, which are pickles: read where they are trusted."""

from __future__ import annotations

import io
import json
import pickle
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.save_util import recursive_getattr

from agents.registry import ALGORITHMS, find
from agents.storage.archive import ForeignFile
from agents.storage.locate import STATISTICS
from dialgym.io.finite_weights import check_finite

Place = str | Path | IO[bytes]


def read_pickled(cls: Any, path: Place, error: ForeignFile, trust: bool, **more: Any) -> Any:
    """A model that Stable-Baselines3 wrote; reading it can run code."""
    try:
        with zipfile.ZipFile(path) as archive:
            described = json.loads(archive.read("data"))
    except (zipfile.BadZipFile, KeyError, ValueError):
        raise ValueError(f"{error}; train one with `dialgym train`") from error
    if not trust:
        raise ValueError(
            f"{str(path)!r} is a pickle that Stable-Baselines3 wrote: "
            "reading it can run code of whoever made it. If you trust them, load it with "
            "trust=True (--trust on the command line) and write it again: "
            "agents.save(agents.load(path, trust=True), path)."
        ) from error
    file: Any = path
    if isinstance(path, str | Path):
        file = io.BytesIO(Path(path).read_bytes())
    else:
        file.seek(0)
    cls = cls or _stock_class(described)
    model = BaseAlgorithm.load.__func__(cls, file, **more)  # type: ignore[attr-defined]
    check_model_finite(model, type(model).__name__)
    take_statistics(model, path)
    return model


def take_statistics(model: Any, path: Place) -> None:
    """Give a model without an env the `VecNormalize` that lies, as a pickle, beside its file."""
    if model.env is not None or not isinstance(path, str | Path):
        return
    if (file := Path(path).with_name(STATISTICS)).is_file():
        model._vec_normalize_env = pickle.loads(file.read_bytes())


def learned_normalized(model: Any) -> bool:
    """Return True if a model sees observations of ``VecNormalize(norm_obs=True)``.

    A loaded model has it as its `learned_normalized`; the statistics are not in its file.
    """
    env = model.get_vec_normalize_env()
    said = getattr(model, "learned_normalized", False)
    return said if env is None else bool(env.norm_obs)


def _stock_class(described: Mapping[str, Any]) -> Any:
    """The algorithm that wrote a pickle, by what its hyperparameters are."""
    ours = described.get("algorithm")
    for row in ALGORITHMS.values():
        if row.home.endswith(f":{ours}") and row.home.startswith("agents."):
            return row.load()
    policy = str(described.get("policy_class", ""))
    if "askable" in policy:
        return find("maskable-ppo").load()
    if "ecurrent" in policy:
        return find("recurrent-ppo").load()
    if "n_quantiles" in described:
        return find("qrdqn").load()
    if "cg_max_steps" in described:
        return find("trpo").load()
    if "clip_range" in described:
        return find("stock-ppo").load()
    return find("stock-dqn" if "exploration_rate" in described else "stock-a2c").load()


def check_model_finite(model: Any, file: str) -> None:
    """Raise a ValueError where a weight of a model is NaN or infinite."""
    remedy = "Load a checkpoint from before (checkpoint-before.zip of its run), or train it again."
    for name in model._get_torch_save_params()[0]:
        check_finite(recursive_getattr(model, name), f"{file}: {name}", remedy)
