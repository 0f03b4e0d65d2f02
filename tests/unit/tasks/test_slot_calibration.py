"""The handcrafted policy on PyDial's own domains scores what it scores in PyDial."""

import importlib.util
import subprocess
import sys
from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest

SCRIPT = Path(__file__).parents[3] / "scripts" / "pydial_table.py"


def load_script():
    spec = importlib.util.spec_from_file_location("pydial_table", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


PYDIAL = load_script()


@pytest.mark.parametrize(("domain", "env"), PYDIAL.ORIGINAL, ids=str)
def test_success_and_return_are_those_of_the_original(domain, env, data, monkeypatch):
    """400 dialogues, of which the interval counts too; the table itself takes 2,000."""
    monkeypatch.setenv("DIALGYM_PYDIAL", str(data / "pydial"))
    found = PYDIAL.measured(domain, env, 400, "pydial")
    for theirs, ours in zip(PYDIAL.ORIGINAL[domain, env], found):
        assert abs(theirs.mean - ours.mean) <= (theirs.half**2 + ours.half**2) ** 0.5


def test_the_built_in_domains_are_not_taken_for_the_originals(monkeypatch):
    monkeypatch.delenv("DIALGYM_PYDIAL", raising=False)
    with pytest.raises(SystemExit, match="expected PyDial's own files; got the built-in domain"):
        PYDIAL.measured("CamRestaurants", 1, 1, "pydial")


def test_the_script_prints_and_writes_a_table_and_exits_by_it(data, monkeypatch, tmp_path):
    monkeypatch.setenv("DIALGYM_PYDIAL", str(data / "pydial"))
    command = [sys.executable, SCRIPT, "--episodes", "100", "--domains", "CamRestaurants"]
    more = ["--envs", "1", "--write", tmp_path / "table.md"]
    ran = subprocess.run([*command, *more], capture_output=True, text=True, check=False)
    head, _, line = ran.stdout.splitlines()
    assert head == f"| {' | '.join(PYDIAL.HEAD)} |"
    assert line.startswith("| 1 | CamRestaurants | ")
    assert (ran.returncode == 0) == (line.split(" | ")[6] == "both")
    assert (tmp_path / "table.md").read_text() == ran.stdout


@pytest.mark.parametrize(
    ("success", "gained", "verdict"),
    [(97.0, 11.0, "both"), (97.0, 12.0, "success"), (90.0, 11.0, "return"), (90, 12, "neither")],
)
def test_a_mean_is_compared_with_the_interval_of_the_original(
    success, gained, verdict, monkeypatch
):
    """Of CamRestaurants, setting 3: 96.5 ± 2.6 % and 10.66 ± 0.82."""
    found = {
        "pydial": (PYDIAL.Figure(success, 1.0), PYDIAL.Figure(gained, 0.5)),
        "correct": (PYDIAL.Figure(98.0, 1.0), PYDIAL.Figure(11.5, 0.5)),
    }
    monkeypatch.setattr(PYDIAL, "measured", lambda *asked: found[asked[-1]])
    asked = Namespace(domains=["CamRestaurants"], envs=[3], episodes=9)
    (_, _), (_, _), (line, right) = PYDIAL.table(asked)
    cells = line.strip("| ").split(" | ")
    assert (cells[:2], cells[6], right) == (["3", "CamRestaurants"], verdict, verdict == "both")
    assert cells[2:6] == [
        f"{success:.2f} ± 1.00", "96.50 ± 2.60", f"{gained:.2f} ± 0.50", "10.66 ± 0.82"
    ]  # fmt: skip
    assert cells[7:] == ["98.00 ± 1.00", "11.50 ± 0.50"]


def test_a_figure_is_a_mean_and_half_its_interval():
    found = PYDIAL.figure(np.array([[0.0, 100.0], [100.0, 100.0]]))
    assert found.mean == 75
    assert found.half == pytest.approx(1.96 * np.sqrt(0.75 * 0.25 / 4) * 100)


def test_the_table_in_the_documentation_has_every_setting_and_holds():
    lines = (SCRIPT.parents[1] / "docs" / "results" / "slot_filling.md").read_text().splitlines()
    assert lines[0] == f"| {' | '.join(PYDIAL.HEAD)} |"
    rows = [line.strip("| ").split(" | ") for line in lines[2:]]
    assert [(row[1], int(row[0])) for row in rows] == list(PYDIAL.ORIGINAL)
    for row, original in zip(rows, PYDIAL.ORIGINAL.values()):
        assert [row[3], row[5]] == [str(figure) for figure in original]
        ours = [PYDIAL.Figure(*map(float, cell.split(" ± "))) for cell in (row[2], row[4])]
        assert all(theirs.holds(own) for theirs, own in zip(original, ours))
        assert row[6] == "both"
