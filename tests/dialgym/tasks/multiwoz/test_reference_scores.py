"""Scores over thousands of dialogues, next to those of ConvLab-2 over 2,000 of its own.

All goals are drawn here, from the real goal model. The original's means have 95 % intervals; ours
must lie in them, or within three joint standard errors where dialogues are split by domains.
"""

from collections import Counter, defaultdict
from typing import Any

import numpy as np
import pytest

from dialgym.tasks.multiwoz.dialogue import Rules, Settings
from dialgym.tasks.multiwoz.entries import SYSTEM_ENTRIES
from dialgym.tasks.multiwoz.types import Acts, MultiWOZBelief
from dialgym.tasks.multiwoz.vectors import Vectoriser
from tests.support import convlab2
from tests.support.by_day import at_night, by_day

NUMBER = 4000
HEADLINE = ("success", "complete", "inform_precision", "inform_recall", "inform_F1", "book_rate",
            "match_dialogue_mean", "turn_all", "return_after_reset")  # fmt: skip
BY_CHANCE = {"match_dialogue_mean", "success", "return_after_reset"}
"""Of one domain: none of the original's 710 failed, where 2 to 4 of 710 do in expectation, and
of those that it played again with other seeds some do. So its spread says nothing."""
Scores = dict[str, dict[str, list[float]]]


def scores(rules: Rules, number: int, system: Any = None) -> tuple[Scores, Counter]:
    """Number of domains, or ``all`` -> metric -> values; and the failures by their cause."""
    found: Scores = defaultdict(lambda: defaultdict(list))
    causes: Counter = Counter()
    for seed in range(number):
        goal = rules.world.draw_goal(np.random.default_rng([0, seed]))
        state, total, said = convlab2.play(rules, goal, seed, system=system)
        metrics = rules.metrics(state)
        values = {
            "success": metrics.success,
            "complete": metrics.complete,
            "inform_precision": metrics.counts.precision,
            "inform_recall": metrics.counts.recall,
            "inform_F1": metrics.counts.f1,
            "book_rate": metrics.book_rate,
            "match_dialogue_mean": metrics.match,
            "turn_all": 2 * (state.turns + 1),
            "return_after_reset": total,
        }
        for name, value in values.items():
            if value is not None:
                for group in ("all", str(len(goal.domains))):
                    found[group][name].append(float(value))
        if not metrics.success:
            causes[cause(said)] += 1
    return found, causes


def cause(said: list[Acts]) -> str:
    """The cause of a failure, as far as the acts tell."""
    user = said[::2]
    if any(
        act.value.startswith(("same area", "the same", "in the same")) for a in user for act in a
    ):
        return "same as"
    asked = [n for n, acts in enumerate(user) if ("Request", "Train") in [a[:2] for a in acts]]
    day = [n for n, acts in enumerate(user) if ("Inform", "Train", "Day") in [a[:3] for a in acts]]
    if asked and (not day or asked[0] < day[0]):
        return "before the day"
    names = {act.value for acts in user for act in acts if act.slot == "Name"}
    return "name" if names & {"ask", "meze bar restaurant"} else "other"


@pytest.fixture(scope="module")
def played() -> tuple[Scores, Counter]:
    settings = Settings(fidelity="convlab2", reward="convlab2")
    return scores(Rules(convlab2.world(), settings), NUMBER)


@pytest.mark.slow
@pytest.mark.parametrize("name", HEADLINE)
def test_rule_system(played, name):
    low, high = convlab2.summary()["rule_vs_agenda"]["all"][name]["ci95"]
    assert low <= np.mean(played[0]["all"][name]) <= high


@pytest.mark.slow
@pytest.mark.parametrize("domains", ["1", "2", "3"])
@pytest.mark.parametrize("name", HEADLINE)
def test_rule_system_by_number_of_domains(played, name, domains):
    if domains == "1" and name in BY_CHANCE:
        assert np.mean(played[0]["1"]["success"]) > 0.985
        return
    reference = convlab2.summary()["rule_vs_agenda"][domains][name]
    low, high = reference["ci95"]
    values = np.array(played[0][domains][name])
    error = np.hypot((high - low) / (2 * 1.96), values.std() / np.sqrt(len(values)))
    assert abs(values.mean() - reference["mean"]) <= 3 * error + 1e-9


@pytest.mark.slow
def test_failures_have_the_causes_of_the_original(played):
    """Of its 62, 40 are of "same area as the ...", 20 of trains asked about before the day."""
    causes = played[1]
    total = sum(causes.values())
    assert 0.50 < causes["same as"] / total < 0.80
    assert 0.20 < causes["before the day"] / total < 0.45
    assert 0 < causes["name"] < 0.10 * total
    assert causes["other"] <= 0.02 * total


class RandomSystem:
    """Says two or three of the 209 acts, whatever they are, with the values that rows have."""

    def __init__(self, rules: Rules) -> None:
        self.vectoriser = Vectoriser(rules.world.database, rules.fidelity)

    def acts(self, belief: MultiWOZBelief, rng: np.random.Generator) -> Acts:
        number = int(rng.integers(2, 4))
        chosen = sorted(rng.choice(len(SYSTEM_ENTRIES), number, replace=False).tolist())
        return self.vectoriser.lexicalise(chosen, belief, rng)


@pytest.mark.parametrize("number", [400, at_night(800)])
def test_random_system(number):
    rules = Rules(convlab2.world(), Settings(fidelity="convlab2", reward="convlab2"))
    found, _ = scores(rules, number, RandomSystem(rules))
    reference = convlab2.summary()["random_vs_agenda"]["all"]
    for name in HEADLINE:
        low, high = reference[name]["ci95"]
        values = np.array(found["all"][name])
        error = np.hypot((high - low) / (2 * 1.96), values.std() / np.sqrt(len(values)))
        assert abs(values.mean() - reference[name]["mean"]) <= 3 * error, name


@pytest.mark.parametrize("number", [500, at_night(1500)])
def test_nothing_fails_by_default(number):
    """With the faults mended the rule system meets every goal, bookings to the letter."""
    rules = Rules(convlab2.world(), Settings(strict=True))
    found, causes = scores(rules, number)
    assert np.mean(found["all"]["success"]) >= 0.999, causes


FAULTS = [
    ("same_as", 0.986),
    ("day_is_booking", 0.964),
    ("first_row", 0.930),
    ("null_answers", 0.995),
]


@pytest.mark.parametrize(
    ("fault", "success"),
    by_day(FAULTS, FAULTS[1], FAULTS[2]),
)
def test_each_fault_costs_its_part(fault, success):
    """The share of goals that are met with one fault alone."""
    rules = Rules(convlab2.world(), Settings(fidelity=fault))
    found, _ = scores(rules, 1000)
    assert np.mean(found["all"]["success"]) == pytest.approx(success, abs=0.02)
    assert np.mean(found["all"]["success"]) < 1
