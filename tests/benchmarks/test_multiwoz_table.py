"""The tables of the rule system in MultiWOZ's city, of what was counted."""

import json

import numpy as np
import pytest

from benchmarks.tables import multiwoz
from dialgym.tasks.multiwoz import MultiWOZ
from dialgym.tasks.multiwoz.dialogue import Settings
from dialgym.tasks.multiwoz.fidelity import FAULTS


@pytest.fixture(scope="module")
def world():
    return MultiWOZ().world


@pytest.fixture(scope="module")
def figures(world):
    return json.loads(json.dumps(multiwoz.measure(world, 40)))


def test_cells_are_means_of_the_dialogues(world, figures):
    rows, _ = multiwoz.beside(figures)
    found = multiwoz.scores(world, Settings(fidelity="convlab2", reward="convlab2"), 40)
    cells = {row[0]: row for row in rows}
    for name in multiwoz.ORIGINAL:
        mean, _, half = cells[name][1].partition(" ± ")
        assert float(mean) == pytest.approx(np.mean(found[name]), abs=0.0006)
        assert float(half) == pytest.approx(
            1.96 * np.std(found[name]) / len(found[name]) ** 0.5, abs=0.0006
        )


def test_a_mean_over_all_dialogues_outside_the_interval_is_not_right(figures):
    theirs = {name: {f"{row.value:g}": 9} for name, row in multiwoz.ORIGINAL.items()}
    by_domains = {f"success, {n}": {"0": 9} for n in multiwoz.BY_DOMAINS}
    alike = {**figures, "convlab2": theirs | by_domains}
    assert multiwoz.beside(alike)[1]
    worse = {**figures, "convlab2": theirs | by_domains | {"success": {"0": 1, "1": 1}}}
    rows, right = multiwoz.beside(worse)
    assert not right
    assert rows[1][4] == "no"


def test_every_fault_and_user_has_a_row(figures):
    faults, users = multiwoz.by_fault(figures)[1:], multiwoz.by_user(figures)[1:]
    assert [row[0] for row in faults] == [f"`{name}`" for name in FAULTS]
    assert [row[0] for row in users] == [f"`{name}`" for name in multiwoz.BEHAVIOURS]
    assert all(0 <= float(mean) <= 1 for row in faults for mean in row[2:])
