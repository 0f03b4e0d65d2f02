"""A small city, and its rules as they are and as those of the original."""

import pytest

from dialgym.tasks.multiwoz.data import load_world
from dialgym.tasks.multiwoz.dialogue import Rules, Settings
from tests.support.small_city import write_city


@pytest.fixture(scope="session")
def city(tmp_path_factory):
    """Museum "ely museum" (fee unknown) and park; hotels "red house" (row 0, centre, 4 stars) and
    "blue inn" (row 1, south, 3 stars); 28 trains, four a day."""
    return load_world(write_city(tmp_path_factory.mktemp("city")))


@pytest.fixture(scope="session")
def rules(city):
    """By fidelity: the rules of dialogues in that city."""
    return {name: Rules(city, Settings(fidelity=name)) for name in ("correct", "convlab2")}
