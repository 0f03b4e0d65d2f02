"""Measured speeds of environments."""

import json
from pathlib import Path

import numpy as np
import pytest

import dialgym
from benchmarks.environments import families
from benchmarks.environments.timing import Figure, cost, machine, rate
from benchmarks.environments.workloads import batched_tokens, games, single_turns
from dialgym.registry import entries


def test_figures_compare():
    slow = Figure("slow", 50.0, "/s")
    fast = Figure("fast", 100.0, "/s", 80, slow, "slow")
    assert fast.ratio == 2
    assert fast.holds
    assert slow.holds is None
    assert Figure("time", 0.7, "s", 0.6).holds is False


def test_rates_and_costs_are_measured():
    work = single_turns({"words": 20})
    assert rate(work, repeats=1, seconds=0.01) > 0
    assert cost(work, repeats=1) > 0
    assert batched_tokens({"words": 20}, masks=True)() == 48 * 1024
    assert {"CPU", "cores", "Python"} < machine().keys()


def test_optimal_finds_every_word():
    needed = games({"words": 50, "guesses": "answers"})
    assert len(needed) == 50
    assert 1 < np.mean(needed) < 3


@pytest.mark.slow
def test_speed_prints_and_writes_its_figures(tmp_path, capsys):
    from benchmarks.environments.__main__ import main

    words = Path(dialgym.__file__).parent / "tasks" / "wordle" / "words" / "answers.txt"
    main(answers=words, repeats=1, seconds=0.01, json=tmp_path / "speed.json")
    assert "CartPole-v1, gym.make" in capsys.readouterr().out
    written = json.loads((tmp_path / "speed.json").read_text())
    assert {"machine", "figures"} <= written.keys()
    assert all(figure["value"] > 0 for figure in written["figures"])


@pytest.mark.parametrize("name", ["Wordle-20-v0", "DailyDialog-v0"])
@pytest.mark.slow
def test_steps_of_a_family_are_counted_in_dialogues_that_go_on(name, monkeypatch):
    monkeypatch.setattr(families, "STEPS", 40)
    monkeypatch.setattr(families, "ROWS", 2)
    monkeypatch.setattr(families, "BATCHED_STEPS", 30)
    alone, together = families.single_steps(name), families.batched_steps(name)
    assert [alone(), alone()] == [40, 40]
    assert [together(), together()] == [60, 60]


def test_every_family_of_tasks_is_measured():
    found = {row.task.split(":")[0].split(".")[2] for row in (e.row for e in entries().values())}
    assert found == set(families.FAMILIES)
