"""The stored dialogues of an offline run: found, checked against the run's env, and chosen from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from agents.buffers.stored import check_environment
from dialgym.datasets import Dataset, concatenate, load_dataset

Data = Dataset | str | Path | Sequence[Dataset | str | Path]


def stored_dialogues(
    data: Data, env_id: str, top: float | None = None, trust: bool = False
) -> Dataset:
    """The dialogues of all of `data`, one after the other, or those of greatest return.

    Args:
        data: a dataset, its path or ``hf:NAME``, or several.
        env_id: the full id that all of them must be of.
        top: the share that is kept, as of `Dataset.top`; None keeps all.
        trust: as of `dialgym.load_dataset`.

    Raises:
        ValueError: the dialogues are of another environment, or of several settings of it.
        FileNotFoundError, ImportError: as of `dialgym.load_dataset`.
    """
    parts = [
        part if isinstance(part, Dataset) else load_dataset(part, trust=trust)
        for part in _parts(data)
    ]
    found = concatenate(parts)
    check_environment(found, env_id)
    return found if top is None else found.top(top)


def label(data: Data | None) -> list[str] | None:
    """What a run says that it learned from."""
    if data is None:
        return None
    return [repr(part) if isinstance(part, Dataset) else str(part) for part in _parts(data)]


def _parts(data: Data) -> Sequence[Dataset | str | Path]:
    return [data] if isinstance(data, Dataset | str | Path) else data


def env_settings(dataset: Dataset | None, given: Mapping[str, Any] | None) -> dict[str, Any]:
    """Settings of the run's env: those that the dialogues were held with, then those given."""
    held = dataset.environment()[1] if dataset is not None else {}
    return {**held, **(given or {})}
