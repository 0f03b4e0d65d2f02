"""Finite checks for rewards, losses and weights, before anything is updated or saved."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

REMEDY = (
    "Lower the learning rate or max_grad_norm, or compute in float32 (autocast: null); --resume "
    "goes on from the last checkpoint, which is as it was."
)


def check_rewards(rewards: np.ndarray, where: str) -> None:
    """Raises FloatingPointError unless rewards (n_envs,) are finite.

    `where` is learner and time.
    """
    finite = np.isfinite(rewards)
    if not finite.all():
        row = int(np.flatnonzero(~finite)[0])
        raise FloatingPointError(
            f"{where}: expected finite rewards, got {rewards[row]} in dialogue {row}. Nothing was "
            "learned from it. Look for the reward that gave it, or its settings; --resume goes on "
            "from the last checkpoint."
        )


def check_number(what: str, value: float, where: str) -> None:
    """Raises FloatingPointError unless a loss or a norm is finite."""
    if not math.isfinite(value):
        raise FloatingPointError(
            f"{where}: expected a finite {what}, got {value}; the weights were left as they were. "
            + REMEDY
        )


def check_tensor(what: str, values: torch.Tensor, where: str) -> None:
    """Raises FloatingPointError unless all numbers of a tensor are finite; see `check_number`."""
    finite = values.isfinite()
    if not finite.all():
        check_number(what, float(values[~finite][0]), where)


def check_weights(module: Any, where: str) -> None:
    """Raises FloatingPointError unless all weights are finite.

    Args:
        module: anything with `named_parameters`.
        where: learner and time.
    """
    for name, weight in module.named_parameters():
        if not bool(torch.isfinite(weight).all()):
            raise FloatingPointError(
                f"{where}: expected finite weights, but {name} has overflowed, so nothing was "
                f"saved. {REMEDY}"
            )
