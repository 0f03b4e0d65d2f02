"""Stored dialogues that the offline learners of this room read."""

import pytest

import dialgym
from tests.support.word_games import ID


@pytest.fixture(scope="session")
def games():
    return dialgym.collect(ID, "random-mixture", 60, seed=0)
