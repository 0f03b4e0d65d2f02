"""Interrupted pools go on as if nothing had been."""

import numpy as np
import pytest

from benchmarks.soak.interleavings import POOLS, Pair


@pytest.mark.parametrize("times", [20, pytest.param(1000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("pool", POOLS, ids=["disabled", "same-step", "next-step"])
def test_interleavings_of_calls_and_interrupts(pool, times):
    """Equal to one process, results and errors."""
    pair, rng = Pair(*pool), np.random.default_rng(0)
    try:
        for _ in range(times):
            pair.interleave(rng)
    finally:
        pair.pool.close()
