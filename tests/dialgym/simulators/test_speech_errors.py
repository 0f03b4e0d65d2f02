"""The nearest words, and their chances."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dialgym.simulators import speech_errors
from dialgym.simulators.speech_errors import levenshtein, neighbours


def test_neighbours_are_the_nearest_words_with_the_published_chances():
    words = ("north", "south", "east", "west", "centre", "dontcare", "nort", "sorth")
    others, below = neighbours(words)["north"]
    assert set(others) == {"nort", "sorth", "south", "west", "east", "centre"}
    assert others[0] in ("nort", "sorth")
    distance = {other: slow_distance("north", other) for other in others}
    share = np.array([1 / distance[other] for other in others])
    share = share / share.sum() + 0.15
    assert np.diff([0, *below]) == pytest.approx(share / share.sum())


def slow_distance(a, b):
    if not a or not b:
        return len(a) + len(b)
    return min(slow_distance(a[1:], b) + 1, slow_distance(a, b[1:]) + 1,
               slow_distance(a[1:], b[1:]) + (a[0] != b[0]))  # fmt: skip


@given(st.lists(st.text("abc", max_size=4), min_size=1, max_size=6, unique=True))
@settings(max_examples=60)
def test_edit_distances_of_all_pairs_are_those_of_each(words):
    found = levenshtein(words)
    for i, a in enumerate(words):
        for j, b in enumerate(words):
            assert found[i, j] == slow_distance(a, b)


@given(st.lists(st.text("abcd", max_size=6), min_size=9, max_size=40, unique=True))
@settings(max_examples=40)
def test_the_nearest_of_many_words_are_those_of_all_pairs(words):
    """Ties included, which the order of the words decides."""
    all_pairs, one_by_one = (speech_errors.Neighbours(tuple(words), words[0]) for _ in "12")
    expected = [all_pairs[word] for word in words]
    few, speech_errors.FEW = speech_errors.FEW, 0
    try:
        assert [one_by_one[word] for word in words] == expected
    finally:
        speech_errors.FEW = few


def test_of_many_words_only_those_asked_for_are_compared():
    """5,000 names, of which all pairs would be 25 million; a pickle takes none along."""
    rng = np.random.default_rng(0)
    words = tuple({"".join(rng.choice(list("abcdefgh "), 12)) for _ in range(5000)})
    near = pickle.loads(pickle.dumps(neighbours(words)))
    others, below = near[words[7]]
    row = [_distance(words[7], word) for word in others]
    assert row == sorted(row)
    assert len(others) == 6
    assert below[-1] == pytest.approx(1)
    assert len(near._known) == 1


def _distance(a, b):
    return int(levenshtein([a, b])[0, 1])
