"""The recipe of GRPO's options: what each learns from, its curve, the table and the picture."""

import json

import numpy as np
import pytest

from benchmarks.recipes import grpo
from benchmarks.recipes.runs import perform, select
from benchmarks.recipes.tables import Line, lines, markdown

QUICK = ("episodes", "turns, belief gain, one group")
SMALL = {"n_envs": 8, "group_size": 4, "n_steps": 20, "batch_size": 64}


@pytest.fixture
def small(monkeypatch):
    sizes = {"GAMES": 10, "STEPS": 2, "TOKENS": 600, "EVERY": 200, "EPISODES": 8}
    for name, value in sizes.items():
        monkeypatch.setattr(grpo, name, value)
    for name, value in SMALL.items():
        monkeypatch.setitem(grpo.GROUPS, name, value)


@pytest.mark.parametrize(
    "method",
    [pytest.param(m.name, marks=() if m.name in QUICK else pytest.mark.slow) for m in grpo.METHODS],
)
def test_each_option_is_scored_on_its_way(method, small, tmp_path):
    [score] = perform(select(grpo.runs(tmp_path, 1), [method]), grpo.EPISODES)
    curve = json.loads((score.run.folder / grpo.CURVE).read_text("utf-8"))
    assert [tokens for tokens, _ in curve] == [0, 200, 400]
    assert all(-8 <= value <= 0 for _, value in curve)  # no bit of belief is among them
    assert grpo.clone(score.run) == tmp_path / "seed0" / "clone" / "model.zip"


def test_options_of_a_seed_begin_with_the_same_clone(small, tmp_path):
    first, other = perform(select(grpo.runs(tmp_path, 1), QUICK), grpo.EPISODES)
    before = [json.loads((s.run.folder / grpo.CURVE).read_text())[0] for s in (first, other)]
    assert before[0] == before[1]
    grpo.PLOT(lines([first, other]), tmp_path / "curves.png")
    assert (tmp_path / "curves.png").stat().st_size > 10_000


@pytest.fixture
def line(tmp_path, monkeypatch):
    """Of two seeds, -5 -4 -3 and -3 -4 -2 after 0, 20,000 and 40,000 of 60,000 tokens."""
    monkeypatch.setattr(grpo, "TOKENS", 60_000)
    runs = grpo.runs(tmp_path, 2)[:: len(grpo.METHODS)]
    for run, values in zip(runs, ((-5, -4, -3), (-3, -4, -2))):
        run.folder.mkdir(parents=True)
        points = list(zip((0, 20_000, 40_000), values))
        (run.folder / grpo.CURVE).write_text(json.dumps(points))
    ends = np.array([[-3.0, -2.0], [-3.0, -2.0]])
    return Line("episodes", grpo.ENV, ends, ends > -9, tuple(runs))


def test_columns_are_means_over_seeds_at_their_time(line):
    assert grpo.after(20_000)(line) == "-4.00 [-4.00, -4.00]"
    assert grpo.after(40_000)(line).startswith("-2.50 [")
    assert grpo.after(60_000)(line).startswith("-2.50 [")
    columns = {"goal": grpo.until_goal}
    assert "| episodes | 2 | 40 |" in markdown([line], columns, grpo.BASE)


@pytest.mark.parametrize(("goal", "shown"), [(-4.5, "0"), (-3.0, "40"), (-1.0, "-")])
def test_the_goal_is_reached_when_no_later_mean_is_below(line, monkeypatch, goal, shown):
    monkeypatch.setattr(grpo, "GOAL", goal)
    assert grpo.until_goal(line) == shown
