"""The handcrafted policy on PyDial's own domains scores what it scores in PyDial."""

import sys
from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.tables import pydial as PYDIAL
from benchmarks.tables.records import read_record
from dialgym.tasks.slot_filling.domain.domain import load_domain

FAST = {("CamRestaurants", 3), ("Laptops11", 6)}
"""Domains and settings of `make test`: each domain, and each channel with errors."""


@pytest.mark.parametrize(
    ("domain", "env"),
    [pytest.param(*row, marks=() if row in FAST else pytest.mark.slow) for row in PYDIAL.ORIGINAL],
)
def test_success_and_return_are_those_of_the_original(domain, env, data, monkeypatch):
    """400 dialogues, of which the interval counts too; the table takes 10 orders of 200."""
    monkeypatch.setenv("DIALGYM_PYDIAL", str(data / "pydial"))
    found = PYDIAL.measured(domain, env, Namespace(episodes=400, orders=1), "pydial")
    for theirs, ours in zip(PYDIAL.ORIGINAL[domain, env], found.figures):
        assert abs(theirs.mean - ours.mean) <= (theirs.half**2 + ours.half**2) ** 0.5


def test_the_built_in_domains_are_not_taken_for_the_originals(monkeypatch):
    monkeypatch.delenv("DIALGYM_PYDIAL", raising=False)
    with pytest.raises(SystemExit, match="expected PyDial's own files; got the built-in domain"):
        PYDIAL.measured("CamRestaurants", 1, Namespace(episodes=1, orders=1), "pydial")


def test_the_script_prints_and_records_a_table_and_exits_by_it(data, monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("DIALGYM_PYDIAL", str(data / "pydial"))
    options = ["--episodes", 50, "--orders", 2, "--domains", "CamRestaurants", "--envs", 1]
    monkeypatch.setattr(sys, "argv", ["pydial", *map(str, options), "--records", str(tmp_path)])
    with pytest.raises(SystemExit) as ended:
        PYDIAL.main()
    printed = capsys.readouterr().out
    head, _, line = printed.splitlines()
    assert head == f"| {' | '.join(PYDIAL.HEAD)} |"
    assert line.startswith("| 1 | CamRestaurants | ")
    assert (not ended.value.code) == (line.split(" | ")[6] == "both")
    assert PYDIAL.table(read_record("slot_filling", tmp_path)["figures"]) == printed


@pytest.mark.parametrize(
    ("success", "gained", "verdict"),
    [(97.0, 11.0, "both"), (97.0, 12.0, "success"), (90.0, 11.0, "return"), (90, 12, "neither")],
)
def test_a_mean_is_compared_with_the_interval_of_the_original(
    success, gained, verdict, monkeypatch
):
    """Of CamRestaurants, setting 3: 96.5 ± 2.6 % and 10.66 ± 0.82."""
    found = {
        "pydial": played([success - 1, success + 1], [gained - 0.5, gained + 0.5]),
        "correct": played([97.0, 99.0], [11.0, 12.0]),
    }
    monkeypatch.setattr(PYDIAL, "measured", lambda *asked: found[asked[-1]])
    asked = Namespace(domains=["CamRestaurants"], envs=[3], episodes=9, orders=2)
    (_, _), (_, _), (line, right) = PYDIAL.lines(PYDIAL.measure(asked))
    cells = line.strip("| ").split(" | ")
    assert (cells[:2], cells[6], right) == (["3", "CamRestaurants"], verdict, verdict == "both")
    assert cells[2:6] == [
        f"{success:.2f} ± 12.71", "96.50 ± 2.60", f"{gained:.2f} ± 6.35", "10.66 ± 0.82"
    ]  # fmt: skip
    assert cells[7:] == ["98.00 ± 12.71", "11.50 ± 6.35", "0.00"]


def played(success, returns):
    """Means of orders: shares of 100 dialogues that succeed, which all have the mean return."""
    solved = [[100.0] * round(share) + [0.0] * (100 - round(share)) for share in success]
    return PYDIAL.Measured(np.array(solved), np.repeat(np.array(returns)[:, None], 100, 1))


def test_a_figure_of_one_order_is_a_mean_and_half_its_interval():
    found = PYDIAL.figure(np.array([[0.0, 100.0, 100.0, 100.0]]))
    assert found.mean == 75
    assert found.half == pytest.approx(1.96 * np.sqrt(0.75 * 0.25 / 4) * 100)


def test_the_interval_of_several_orders_is_that_of_their_means():
    values = np.random.default_rng(0).normal([[0.0], [3.0], [6.0]], 1.0, (3, 4000))
    found = PYDIAL.figure(values)
    assert found.half == pytest.approx(4.303 * 3 / np.sqrt(3), rel=0.02)
    assert PYDIAL.between(values) == pytest.approx(3.0, rel=0.02)
    alike = np.random.default_rng(1).normal(0.0, 1.0, (50, 400))
    assert PYDIAL.between(alike) < 0.03
    assert PYDIAL.between(values[:1]) == 0.0


def test_orders_have_the_same_values(data):
    source = str(data / "pydial" / "CamRestaurants")
    found = []
    for order in (0, 1, 1):
        with PYDIAL.ordered(source, order) as path:
            found.append(load_domain(path))
    own, other, again = (domain.ontology.informable["food"] for domain in found)
    assert own != other == again
    assert sorted(own) == sorted(other)
    assert own == load_domain(source).ontology.informable["food"]
    assert found[0].database.rows == found[1].database.rows


def test_the_table_in_the_documentation_has_every_setting_and_holds():
    page = Path(__file__).parents[4] / "docs" / "results" / "slot_filling.md"
    lines = page.read_text().splitlines()
    assert lines[0] == f"| {' | '.join(PYDIAL.HEAD)} |"
    rows = [line.strip("| ").split(" | ") for line in lines[2:]]
    assert [(row[1], int(row[0])) for row in rows] == list(PYDIAL.ORIGINAL)
    for row, original in zip(rows, PYDIAL.ORIGINAL.values()):
        assert [row[3], row[5]] == [str(figure) for figure in original]
        ours = [PYDIAL.Figure(*map(float, cell.split(" ± "))) for cell in (row[2], row[4])]
        assert all(theirs.holds(own) for theirs, own in zip(original, ours))
        assert row[6] == "both"
