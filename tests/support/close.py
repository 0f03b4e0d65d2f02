"""Comparison of computed arrays, relative to the size of what is compared.

Sums of float32 differ between instruction sets in their last bits, in proportion to the largest
numbers that go into them: a tolerance in absolute terms holds on one machine and not on the next.
"""

from typing import Any

import numpy as np


def assert_close(actual: Any, expected: Any, rtol: float = 1e-5) -> None:
    """Fail where an entry differs by more than `rtol` times the largest entry of `expected`.

    Args:
        actual, expected: numbers or arrays (tensors too) of the same shape.
        rtol: relative to the greatest absolute value of `expected`; where all of it is 0, absolute.
    """
    found, wanted = _array(actual), _array(expected)
    assert found.shape == wanted.shape, f"shapes differ: {found.shape} and {wanted.shape}"
    scale = float(np.abs(wanted).max(initial=0.0)) or 1.0
    np.testing.assert_allclose(found, wanted, rtol=0, atol=rtol * scale)


def _array(values: Any) -> np.ndarray:
    if hasattr(values, "detach"):
        values = values.detach().cpu().double().numpy()
    return np.asarray(values, np.float64)
