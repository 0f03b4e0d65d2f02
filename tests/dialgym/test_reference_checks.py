"""Registered reference scores are compared with dialogues that are played again."""

import numpy as np
import pytest
from typer.testing import CliRunner

import dialgym
from dialgym.cli.app import app
from dialgym.registry import entry_of
from dialgym.testing import check_references
from dialgym.testing.scripted_returns import mean_interval

TRUE = entry_of("dialgym/Wordle-20-v0").row.scores


@pytest.fixture
def scored():
    """A small Wordle under an id of its own, with the scores that a test gives it."""

    def register(**scores):
        settings = {"words": 20, "guesses": "answers", "constraint": "words"}
        dialgym.register(
            "Scored-v0", "dialgym.tasks.wordle:Wordle", settings=settings, scores=scores
        )
        return "Scored-v0"

    return register


def scores(**changes):
    return {
        "random": TRUE["random"],
        "expert": TRUE["expert"],
        "expert_policy": "optimal",
    } | changes


def test_true_scores_pass(scored):
    check_references(scored(**scores()))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"random": -2.0}, r"registered with -2 as the mean return of the random \('random'\)"),
        ({"expert": -4.0}, r"registered with -4 as the mean return of the expert \('optimal'\)"),
        ({"expert_policy": "random"}, r"of the expert \('random'\), but 50 dialogues have -"),
    ],
)
def test_false_scores_are_told(scored, changes, message):
    env_id = scored(**scores(**changes))
    with pytest.raises(AssertionError, match=message):
        check_references(env_id)
    done = CliRunner().invoke(app, ["check", env_id, "-n", "5"])
    assert done.exit_code == 1
    assert "reference scores are true" in done.output


def test_an_id_without_scores_has_nothing_to_check(scored):
    check_references(scored())


def test_the_interval_holds_its_level_for_rare_losses():
    """One return in fifty is the lowest that there is: in most samples of 50 few come up."""
    rng, mean, bounds = np.random.default_rng(0), 0.98 * 10, (0.0, 10.0)
    samples = np.where(rng.random((2_000, 50)) < 0.02, 0.0, 10.0)
    inside = [low <= mean <= high for low, high in (mean_interval(s, bounds) for s in samples)]
    assert np.mean(inside) >= 0.999


def test_the_interval_narrows_with_the_dialogues():
    rng = np.random.default_rng(1)
    widths = [np.ptp(mean_interval(rng.normal(size=n), (-np.inf, np.inf))) for n in (50, 5_000)]
    assert widths[1] < widths[0] / 8
