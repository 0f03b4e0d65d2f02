"""Stored dialogues of act views: the beliefs, acts and masks of each as a sequence of decisions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from gymnasium.spaces import MultiBinary

from agents.buffers.sequences import Sequences
from agents.buffers.stored import sequences_of
from agents.buffers.stored_tokens import check_environment, loaded
from dialgym.datasets import ActData, Dataset
from dialgym.datasets.schema import acts_name


class StoredActs:
    """The dialogues of act views, counted and cut by dialogue.

    Args:
        data: all decisions.
    """

    def __init__(self, data: ActData) -> None:
        self.data = data

    def __len__(self) -> int:
        return len(self.data.offsets) - 1

    def batch(self, rows: np.ndarray, gamma: float = 1.0, trim: bool = True) -> ActData:
        """The decisions of the dialogues `rows` (b,), one dialogue after the other.

        Returns are as the data has them; `gamma` and `trim` are those of `TokenData.batch`.
        """
        offsets = self.data.offsets
        sizes = np.diff(offsets)[rows]
        ends = sizes.cumsum()
        chosen = np.arange(ends[-1] if len(ends) else 0) + np.repeat(
            offsets[rows] - ends + sizes, sizes
        )
        return ActData(self.data.batch(chosen), np.append(0, ends), self.data.kind)


def stored_acts(
    dataset: Any, spaces: tuple[Any, Any], gamma: float, place: Mapping[str, Any] | None = None
) -> StoredActs:
    """The dialogues of `dataset` in which acts of an env were chosen by its beliefs.

    Args:
        dataset: a `Dataset`, `ActData`, or the path or name that `dialgym.load_dataset` takes.
        spaces: of observations and actions.
        gamma: discount of the returns, from decision to decision.
        place: the env, as of `dialgym.views.env_spec.made_from`; None where it is not dialgym's.

    Raises:
        ValueError: the dialogues were held in another env, the acts or beliefs are others than the
            env's, or there are none.
    """
    dataset, env = loaded(dataset), place or {}
    check_environment(dataset, env.get("id"))
    data = dataset.acts(gamma) if isinstance(dataset, Dataset) else dataset
    if not isinstance(data, ActData):
        raise ValueError(
            "dataset: expected a dialgym Dataset, its ActData, or the path of one, got "
            f"{type(dataset).__name__}; make one with dialgym.collect"
        )
    beliefs, actions = spaces
    count = int(actions.n)
    several = (count,) if isinstance(actions, MultiBinary) else ()
    found = data.decisions
    sizes = found.observations.shape[1:], found.actions.shape[1:], found.action_masks.shape[1:]
    if sizes != (beliefs.shape, several, (count,)) or (
        not several and found.actions.max() >= count
    ):
        raise ValueError(
            f"dataset: expected beliefs of {beliefs.shape[0]} numbers and actions of {actions}, as "
            f"in the env, got beliefs of {sizes[0][0]} and {sizes[2][0]} acts"
            f"{' at once' if sizes[1] else ''}; collect dialogues in this act view"
        )
    names = env.get("acts", ())
    if names and data.kind != acts_name(names, beliefs.shape[0]):
        raise ValueError(
            f"dataset: expected dialogues in which the env's acts ({names[0]!r}, ...) were chosen, "
            "got as many acts of other names, as of another domain; collect dialogues in this env, "
            "or learn in theirs (Dataset.environment() tells which)"
        )
    return StoredActs(data)


def act_decisions_of(data: ActData, device: torch.device) -> Sequences:
    """Dialogues in which acts were chosen: a sequence of beliefs (t, B) for each with any.

    Columns are those of `DecisionBatch`, and `masks` (N, A) bool, what could be chosen.
    """
    batch, sizes = data.decisions, np.diff(data.offsets)
    owner = np.repeat(np.arange(len(sizes)), sizes)
    last = np.flatnonzero(batch.truncated & ~batch.terminated)  # their next state has a value
    rows = np.concatenate([owner, owner[last]])
    source = np.concatenate([np.arange(len(owner)), last])
    order = np.argsort(rows, kind="stable")
    acted = (np.arange(len(rows)) < len(owner))[order]
    rows, source = rows[order], source[order]
    begins = np.flatnonzero(np.append(True, rows[1:] != rows[:-1]))
    places = np.arange(len(rows)) - np.repeat(begins, np.diff(np.append(begins, len(rows))))
    beliefs = np.zeros((len(sizes), int(places.max(initial=0)) + 1, batch.observations.shape[1]))
    beliefs = beliefs.astype(np.float32)
    beliefs[rows, places] = _either(acted, batch.observations, batch.next_observations, source)
    earned = np.bincount(owner, batch.rewards, len(sizes)).astype(np.float32)
    columns = {
        "actions": _either(acted, batch.actions, np.zeros_like(batch.actions), source),
        "rewards": np.where(acted, batch.rewards[source], np.float32(0)),
        "returns": np.where(acted, batch.returns_to_go[source], np.float32(0)),
        "total_returns": earned[rows],
        "is_action": acted,
        "masks": _either(acted, batch.action_masks, batch.next_action_masks, source),
    }
    return sequences_of(beliefs, rows, places, columns, device)


def _either(first: np.ndarray, a: np.ndarray, b: np.ndarray, source: np.ndarray) -> np.ndarray:
    """Rows `source` (N,) of `a` where `first` (N,) is set, of `b` elsewhere."""
    where = first.reshape(-1, *[1] * (a.ndim - 1))
    return np.where(where, a[source], b[source])
