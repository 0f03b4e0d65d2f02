"""Seeding a policy that samples, and leaving everyone else's randomness as it was."""

import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np


@contextmanager
def seeded(policy: Any, seed: int) -> Iterator[None]:
    """Seed a policy by Stable-Baselines3's ``set_random_seed``, where it has one, for a block.

    SB3 seeds the global generators of Python, NumPy and torch, and the environment that the model
    is trained in. That environment is left alone, and the generators are put back afterwards.
    """
    if not hasattr(policy, "set_random_seed"):
        yield
        return
    numbers, arrays = random.getstate(), np.random.get_state()  # noqa: NPY002
    with _torch_put_back():
        _seed(policy, seed)
        try:
            yield
        finally:
            random.setstate(numbers)
            np.random.set_state(arrays)  # noqa: NPY002


def _seed(policy: Any, seed: int) -> None:
    env = getattr(policy, "env", None)
    if env is None:
        policy.set_random_seed(seed)
        return
    policy.env = None
    try:
        policy.set_random_seed(seed)
    finally:
        policy.env = env


@contextmanager
def _torch_put_back() -> Iterator[None]:
    torch = sys.modules.get("torch")
    if torch is None:
        yield
        return
    devices = range(torch.cuda.device_count()) if torch.cuda.is_initialized() else []
    with torch.random.fork_rng(devices=devices):
        yield
