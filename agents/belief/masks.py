"""Which acts an env allows, for learners of any env of beliefs and acts."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from sb3_contrib.common.maskable.utils import get_action_masks, is_masking_supported
from stable_baselines3.common.vec_env import VecEnv
from torch import Tensor

FORBIDDEN_VALUE = -1e9
"""In the place of a Q value, so that neither an argmax nor a maximum is ever that of the act."""


def allowed(env: VecEnv) -> np.ndarray:
    """(n_envs, A) bool: the acts that each row allows; all, where the env has no masks."""
    if is_masking_supported(env):
        return get_action_masks(env).astype(bool, copy=False)
    return everything(env.num_envs, env.action_space)


def everything(rows: int, space: spaces.Space) -> np.ndarray:
    """(rows, A) bool of a `Discrete` space, all True."""
    return np.ones((rows, count_acts(space)), bool)


def count_acts(space: spaces.Space) -> int:
    """A, of a `Discrete` space.

    Raises:
        ValueError: it is another one.
    """
    if isinstance(space, spaces.Discrete):
        return int(space.n)
    raise ValueError(f"expected Discrete actions, one act at a time, got {space}")


def fitting(masks: Any, rows: int, space: spaces.Space) -> np.ndarray:
    """Masks as a caller of `predict` gave them, or none, as (rows, A) bool.

    Raises:
        ValueError: they have another shape, or a row without any act.
    """
    if masks is None:
        return everything(rows, space)
    found = np.asarray(masks, bool)
    wanted = (rows, count_acts(space))
    if found.size != rows * wanted[1]:
        raise ValueError(f"action_masks: expected {wanted}, got {found.shape}")
    found = found.reshape(wanted)
    if not found.any(1).all():
        raise ValueError("action_masks: expected at least one act in each row, got a row of none")
    return found


def masked(values: Tensor, masks: Tensor | np.ndarray) -> Tensor:
    """Q values (..., A) with `FORBIDDEN_VALUE` where masks (n, A) have False."""
    where = torch.as_tensor(masks, dtype=torch.bool, device=values.device)
    return values.masked_fill(~where, FORBIDDEN_VALUE)


def uniform(*shape: int, rng: Any = np.random) -> np.ndarray:
    """Numbers from 0 to 1 of NumPy's global generator.

    That is the one which Stable-Baselines3 seeds and draws from, and which a checkpoint keeps.
    """
    drawn: np.ndarray = rng.random(shape)
    return drawn


def random_below(count: int, rows: int) -> np.ndarray:
    """(rows,) int64: whole numbers less than `count`, drawn as `uniform` does."""
    return (uniform(rows) * count).astype(np.int64)


def random_acts(masks: np.ndarray) -> np.ndarray:
    """(n,) int64: in each row one of the allowed acts (n, A) bool, all equally likely."""
    keys = np.where(masks, uniform(*masks.shape), -1.0)
    acts: np.ndarray = keys.argmax(1)
    return acts
