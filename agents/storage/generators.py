"""Global random generators, kept while something else seeds them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch


@contextmanager
def generators_kept() -> Iterator[None]:
    """Restore the generators of Python, NumPy and PyTorch after the block, which may seed them.

    A model that is read seeds them with its own seed, as every algorithm of Stable-Baselines3 does.
    Where it is read for its weights alone, another model's draws must not depend on it.
    """
    own, devices = random.getstate(), torch.cuda.device_count()
    numpy = np.random.get_state()  # noqa: NPY002
    with torch.random.fork_rng(range(devices)):
        try:
            yield
        finally:
            random.setstate(own)
            np.random.set_state(numpy)  # noqa: NPY002
