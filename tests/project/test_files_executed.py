"""Number of files that a reader of an update has to open."""

import pytest

pytest.importorskip("stable_baselines3")
from scripts.count_files import count_update


def test_an_update_is_read_in_eight_files():
    assert len(count_update().functions) <= 8
