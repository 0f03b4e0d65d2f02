"""Means of the committed leaderboard, computed from the committed files by plain arithmetic.

Nothing of dialgym is used: files are read as JSON, the table as text.
"""

import json
import re
from collections import defaultdict
from pathlib import Path
from statistics import fmean

import pytest
import yaml

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results"
TABLE = (ROOT / "docs" / "results" / "leaderboard.md").read_text("utf-8")
PANELS = yaml.safe_load((ROOT / "envs_registry.yaml").read_text("utf-8"))["panels"]
DIGITS = {"score": 1, "success %": 1, "return": 2}
SECTIONS = re.findall(r"^## (\S+).*\n\n((?:\|.*\n)+)", TABLE, re.MULTILINE)


def rows_of(panel):
    """The rows of the panel's version, as plain objects."""
    files = sorted((RESULTS / panel).glob("*/*-seed*.json"))
    rows = [json.loads(file.read_text("utf-8")) for file in files]
    return [row for row in rows if row["version"] == PANELS[panel]["version"]]


def figure(row, metric):
    """The mean of a row's episodes, as it was trained."""
    part = row["episodes"][row["way"]]
    if metric == "success %":
        return 100 * fmean(part["solved"])
    mean = fmean(part["returns"])
    if metric == "return":
        return mean
    random, expert = row["hashes"]["references"]
    return 100 * (mean - random) / (expert - random)


def cells_of(text):
    head, _, *lines = ([cell.strip() for cell in line.split("|")[1:-1]] for line in
                       text.strip().splitlines())  # fmt: skip
    return [dict(zip(head, line, strict=True)) for line in lines]


@pytest.mark.parametrize("panel", [name for name in PANELS if (RESULTS / name).is_dir()])
def test_the_table_has_the_means_of_the_rows(panel):
    found = defaultdict(lambda: defaultdict(list))
    tables = [cells_of(text) for name, text in SECTIONS if name == panel]
    metric = next(name for name in DIGITS if name in tables[0][0])
    for row in rows_of(panel):
        label = row["name"] if row["way"] == "scripted" else f"{row['name']} ({row['way']})"
        source = row["hashes"].get("source", "as named")
        found[label, source][row["id"]].append(figure(row, metric))
    expected = {}
    for (label, _), by_id in found.items():
        mean = fmean(fmean(values) for values in by_id.values())
        low, high = (few(map(len, by_id.values())) for few in (min, max))
        runs = f"{low}" if low == high else f"{low}-{high}"
        expected.setdefault(label, []).append((mean, len(by_id), runs))
    shown = [cells for table in tables for cells in table]
    assert len(shown) == sum(map(len, expected.values()))
    for cells in shown:
        value = float(cells[metric].split()[0].rstrip("†"))
        near = 0.51 * 10 ** -DIGITS[metric]
        assert any(
            abs(value - mean) <= near
            and (cells["environments"], cells["runs"]) == (str(environments), runs)
            for mean, environments, runs in expected[cells["policy"]]
        ), cells
