"""Action masks of any environment of beliefs and acts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from sb3_contrib.common.maskable.utils import get_action_masks, is_masking_supported
from stable_baselines3.common.vec_env import VecEnv
from torch import Tensor

from agents.models.masking import everything, fitting

FORBIDDEN_VALUE = -1e9
"""In the place of a Q value, so that neither an argmax nor a maximum is ever that of the act."""


def allowed(env: VecEnv) -> np.ndarray:
    """(n_envs, A) bool: the acts that each row allows; all, where the env has no masks.

    Raises:
        ValueError: as of `fitting`.
    """
    if is_masking_supported(env):
        return fitting(get_action_masks(env), env.num_envs, env.action_space)
    return everything(env.num_envs, env.action_space)


def allowed_at_the_end(
    masks: np.ndarray, infos: Sequence[Mapping[str, Any]], space: spaces.Space
) -> np.ndarray:
    """(n, A) bool: the acts that the last observations of episodes allow.

    Their env has begun other episodes already. Where an info has no ``action_mask``, as envs made
    with `action_masks=True` give it, it is the mask that the last act was chosen within.

    Args:
        masks: (n, A) bool, of the last acts.
        infos: n, of the last steps.
        space: of the acts.

    Raises:
        ValueError: as of `fitting`, for an episode that a limit cut off.
    """
    found = masks.copy()
    for row, info in enumerate(infos):
        if "action_mask" in info and info.get("TimeLimit.truncated"):
            found[row] = fitting(info["action_mask"], 1, space)[0]
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
