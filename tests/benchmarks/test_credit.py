"""Figures of the recipe `credit` that are made of curves and ranks, by hand."""

import numpy as np
import pytest

from benchmarks.recipes.credit import rank_correlation, rollout_of_good_play, trailing_means


def test_means_hold_1024_dialogues_or_all_that_there_are():
    returns, counts = np.array([0.0, 1.0, 2.0, 6.0]), np.array([512, 512, 512, 512])
    assert trailing_means(returns, counts) == pytest.approx([0.0, 0.5, 1.5, 4.0])


@pytest.mark.parametrize(
    ("returns", "counts", "rollout"),
    [
        ([-10.0, -2.0, -1.0], [1024] * 3, 2),
        ([-10.0, -9.0, -8.0], [1024] * 3, None),
        # of a rollout that cuts dialogues those have ended that were short, and paid well
        ([-2.0, -20.0, -18.0, -1.0], [8, 120, 128, 4096], 3),
    ],
)
def test_play_is_good_after_nine_tenths_of_the_way(returns, counts, rollout):
    assert rollout_of_good_play(np.array(returns), np.array(counts), best=-1.0) == rollout


def test_equal_numbers_share_their_rank():
    x = np.array([1.0, 1.0, 2.0, 3.0])
    assert rank_correlation(x, x**3) == pytest.approx(1.0)
    assert rank_correlation(x, -x) == pytest.approx(-1.0)
    assert rank_correlation(x, np.zeros(4)) == 0.0
