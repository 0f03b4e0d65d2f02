"""People's scores on the real files beside the published ones; shares of English understood."""

import pytest

from benchmarks.tables.bargain import scores, understood
from dialgym.tasks.bargain import Bargain
from dialgym.tasks.bargain.corpus import of_split

FOLDERS = {"items": "deal_or_no_deal", "goods": "casino", "price": "craigslist_bargain"}
UNDERSTOOD = {"items": (0.91, 0.88), "goods": (0.75, 0.57), "price": (0.69, 0.88)}
"""Least shares of utterances and of deals."""
FALSELY = {"items": 0.20, "goods": 0.41, "price": 0.02}
"""Greatest shares of acceptances of another deal than was made."""


def played(game, data):
    task = Bargain(game, data=data / FOLDERS[game])
    return task, of_split(task.data, task.game, "test")


def test_human_references_of_deal_or_no_deal(data):
    """Of 1,052 perspectives, half of whom speak first: each dialogue has two."""
    found = scores(*played("items", data))
    assert found["agreed"] == pytest.approx(0.764, abs=0.004)
    assert found["points"] == pytest.approx(5.63, abs=0.03)
    assert found["where agreed"] == pytest.approx(7.37, abs=0.03)
    assert found["pareto"] == pytest.approx(0.711, abs=0.01)


def test_human_references_of_casino(data):
    found = scores(*played("goods", data))
    assert found["points"] == pytest.approx(18.91, abs=0.01)
    assert found["agreed"] == 0.99


@pytest.mark.parametrize("game", FOLDERS)
def test_english_of_people_is_understood(data, game):
    found = understood(*played(game, data))
    least = UNDERSTOOD[game]
    assert found["understood"] >= least[0]
    assert found["deals read"] >= least[1]
    assert found["falsely"] <= FALSELY[game] * (found["accepted"] + found["falsely"])
