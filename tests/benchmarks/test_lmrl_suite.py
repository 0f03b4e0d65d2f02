"""The table of LMRL-Gym's tasks: two scales that are never mixed, and what has no rows says so."""

from pathlib import Path

import pytest

pytest.importorskip("stable_baselines3")
from benchmarks.tables import lmrl_suite
from benchmarks.tables.records import read_record
from dialgym.experiments.panel import panel_named
from dialgym.experiments.row import ExperimentRow

PLACES = {place.short: place for place in panel_named(lmrl_suite.PANEL).environments}
FIGURES = {
    place.id: {"returns": {"-20": 1, "-10": 1}, "random": -18.0, "optimal": -5.0}
    for place in PLACES.values()
}


def row(seed, drawn, greedy, name="ppo", place="Maze-v0"):
    """A row of an environment whose episodes have these returns."""
    episodes = {
        way: {"returns": returns, "solved": [True] * len(returns)}
        for way, returns in (("drawn", drawn), ("greedy", greedy))
    }
    head = {"id": PLACES[place].id, "name": name, "seed": seed, "kind": "trained"}
    more = {"way": "drawn", "cost": {"cpu_seconds": 30.0}, "episodes": episodes}
    return ExperimentRow({**head, **more}, Path("row.json"), True)


ROWS = [row(0, [-15.0, -15.0], [-5.0, -5.0]), row(1, [-10.0, -10.0], [-5.0, -5.0])]


def cells(table):
    """The cells of each line, by the first."""
    lines = [line.strip("| ").split(" | ") for line in table.splitlines()]
    return {first: dict(zip(lines[0][1:], rest)) for first, *rest in lines}


def test_each_scale_has_its_own_zero_and_both_the_optimal_policy_at_the_top():
    theirs = cells(lmrl_suite.on_their_scale(FIGURES, ROWS))["Maze-v0"]
    ours = cells(lmrl_suite.on_our_scale(FIGURES, ROWS))["Maze-v0"]
    # the mean of the stored returns is -15: scores of 50 and 75 there, of 300/13 and 800/13 here
    assert theirs["ppo"].startswith("62.5 [")
    assert ours["ppo"].startswith("42.3 [")
    assert theirs["LMRL-Gym's best"] == "99.9"
    assert ours["random, optimal"] == "-18.00, -5.00"


def test_over_all_environments_each_weighs_the_same_whatever_its_unit():
    """A house whose returns are 0 and 1 counts as much as mazes of 13 points."""
    house = "TextNav-v0"
    figures = {**FIGURES, PLACES[house].id: {"random": 0.0, "optimal": 1.0}}
    played = [("ppo", 1.0, -5.0), ("bc-long", 0.0, -5.0), ("grpo", 0.0, -18.0)]
    rows = [
        row(seed, [-18.0 * (place != house)], [of_house if place == house else other], name, place)
        for name, of_house, other in played
        for seed in (0, 1)
        for place in PLACES
    ]
    shown = cells(lmrl_suite.over_all(figures, rows))
    best, lacking = 100.0, 100 - 100 / len(PLACES)
    assert shown["greedy"]["ppo"].startswith(f"{best:.1f}")
    assert shown["greedy"]["bc-long"].startswith(f"{lacking:.1f}")
    assert shown["greedy, less bc-long"]["ppo"] == f"{best - lacking:+.1f}"
    assert shown["greedy, less bc-long"]["grpo"] == f"{-lacking:+.1f}"
    assert shown["greedy, less bc-long"]["bc-long"] == ""
    assert shown["drawn, less bc-long"]["ppo"] == "+0.0 [0.0, 0.0]"
    assert shown["greedy"]["ilql"] == lmrl_suite.NOT_MADE
    assert shown["greedy, less monte-carlo"]["ppo"] == lmrl_suite.NOT_MADE


def test_a_learner_is_shown_as_it_was_trained_and_by_itself_both_ways():
    head, _, line = lmrl_suite.each(FIGURES, ROWS).splitlines()
    assert head.startswith("| environment | learner | return drawn | greedy |")
    assert line.startswith("| Maze-v0 | ppo | -12.50 [")
    assert "| -5.00 | 62.5 [" in line


def test_intervals_stay_within_what_returns_can_be():
    """Of two trainings that differ much; a return of 0, the most there is, scores 162.5 here."""
    low, high = lmrl_suite.return_bounds(PLACES["Maze-v0"])
    far = [row(0, [-19.0], [-19.0]), row(1, [-6.0], [-6.0])]
    shown = cells(lmrl_suite.on_their_scale(FIGURES, far))["Maze-v0"]["ppo"]
    ends = [float(x) for x in shown.partition("[")[2].rstrip("]").split(", ")]
    assert 0 <= ends[0] < 10
    assert 100 < ends[1] <= 50 + 50 * (high + 15) / 10
    assert (low, high) == (-80, 0)


def test_what_has_no_rows_says_so():
    table = lmrl_suite.table(FIGURES, Path("nowhere"))
    parts = [cells(part) for part in table.split("\n\n")]
    learners = [*panel_named(lmrl_suite.PANEL).algorithms]
    for part in parts[:2]:
        for name in PLACES:
            assert {part[name][learner] for learner in learners} == {lmrl_suite.NOT_MADE}
    assert {parts[2]["drawn"][learner] for learner in learners} == {lmrl_suite.NOT_MADE}
    assert len(parts[3]) == 2  # the head and the line below it


def test_every_environment_is_of_one_task_of_the_suite():
    assert lmrl_suite.task_of(PLACES["Maze-Partial-v0"]) == "Maze-Partial"
    assert {lmrl_suite.task_of(place) for place in PLACES.values()} == {*lmrl_suite.SUITE}


def test_its_record_is_made_again():
    figures = read_record(lmrl_suite.NAME)["figures"]
    words, things = PLACES["Wordle-20-v0"], PLACES["TwentyQuestions-16-v0"]
    assert lmrl_suite.stored_returns(words) == figures[words.id]["returns"]
    assert lmrl_suite.optimum(things) == figures[things.id]["optimal"]
