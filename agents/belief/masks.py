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
    return np.ones((rows, int(space.n)), bool)  # type: ignore[attr-defined]


def fitting(masks: Any, rows: int, space: spaces.Space) -> np.ndarray:
    """Masks as a caller of `predict` gave them, or none, as (rows, A) bool.

    Raises:
        ValueError: they have another shape, or a row without any act.
    """
    if masks is None:
        return everything(rows, space)
    found = np.asarray(masks, bool)
    wanted = (rows, int(space.n))  # type: ignore[attr-defined]
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


def random_acts(masks: np.ndarray, rng: Any = np.random) -> np.ndarray:
    """(n,) int64: in each row one of the allowed acts (n, A), all equally likely.

    Args:
        masks: (n, A) bool.
        rng: what `random` is drawn from; NumPy's global one, which Stable-Baselines3 seeds and a
            checkpoint keeps.
    """
    keys = np.where(masks, rng.random(masks.shape), -1.0)
    acts: np.ndarray = keys.argmax(1)
    return acts
