"""Columns of numbers are looked at all at once, and one by one where they are of other types."""

import math
from fractions import Fraction

import numpy as np
import pytest

from dialgym.errors import is_finite
from dialgym.io.strict_reader import all_finite

NUMBERS = [[], [1, 2.5], [-0.0], [np.float64(1)], [np.int64(3), 2], [Fraction(1, 2), 1]]
OTHERS = [[1, True], [1, math.nan], [math.inf], [10**400, 1.0], [np.float32("nan")], ["1"], [None]]


@pytest.mark.parametrize("column", [*NUMBERS, *OTHERS], ids=lambda column: str(column)[:20])
def test_columns_are_finite_where_each_number_is(column):
    assert (
        all_finite(column) == all(map(is_finite, column)) == any(column is one for one in NUMBERS)
    )
    assert all_finite(iter(column)) == all_finite(column)
