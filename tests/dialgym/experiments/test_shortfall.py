"""What a policy leaves to the best response to its partner."""

import numpy as np
import pytest

from dialgym.experiments import evaluate
from dialgym.experiments.shortfall import shortfall
from tests.support.commands import fail, succeed

ID = "dialgym/Bargain-v0"


def test_the_gap_is_that_of_the_same_dialogues():
    settings = {"simulator": "stubborn"}
    own, best = (
        evaluate(policy, ID, 40, [3], settings)
        for policy in ("fair", {"name": "best-response", "partner": "stubborn"})
    )
    found = shortfall(own, ID)
    assert (found.partner, found.own, found.best) == ("stubborn", own.mean_return, best.mean_return)
    gaps = best[ID].returns - own[ID].returns
    assert (gaps >= 0).all(), "in no dialogue is anybody better"
    assert found.gap.value == pytest.approx(np.mean(gaps))
    assert found.gap.low <= found.gap.value <= found.gap.high
    assert found.share == own.mean_return / best.mean_return
    assert shortfall(best, ID).share == 1.0


def test_the_default_partner_is_named():
    assert shortfall(evaluate("fair", ID, 4, [0]), ID).partner == "conceding"


@pytest.mark.parametrize(("env_id", "settings", "text"), [
    (ID, {"simulator": "random"}, r"\(conceding, .*; got 'random'"),
    ("dialgym/Wordle-20-v0", {}, "none in Wordle"),
])  # fmt: skip
def test_a_partner_without_a_known_best_response_is_one_clear_error(env_id, settings, text):
    with pytest.raises(ValueError, match=text):
        shortfall(evaluate("random", env_id, 2, [0], settings), env_id)


def test_the_command_says_it_for_each_partner():
    printed = succeed("evaluate", "fair", "Bargain-v0", "-n", "5", "--seeds", "0", "--best",
                      "--over", "simulator=stubborn,conceding")  # fmt: skip
    assert "fair with stubborn: " in printed
    assert " % of it" in printed
    assert "fair with conceding: " in printed


def test_the_command_asks_for_the_best_response_before_it_plays(monkeypatch):
    monkeypatch.setattr("dialgym.experiments.evaluate", lambda *_, **__: pytest.fail("it played"))
    assert "(none in Wordle)" in fail("evaluate", "random", "Wordle-20-v0", "--best")
