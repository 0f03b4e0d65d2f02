"""The picture of success against noise: its figures, its parts, and what is committed of it."""

import re
import sys
from pathlib import Path

import pytest

import dialgym
from benchmarks.tables import noise as NOISE
from benchmarks.tables.records import read_record
from dialgym.experiments.statistics import wilson

ROOT = Path(__file__).parents[4]
PNG = b"\x89PNG\r\n"


def test_a_point_is_the_number_of_dialogues_that_succeed():
    kwargs = {"domain": "Restaurants", "noise": "set3", "error_rate": 0.4}
    result = dialgym.evaluate("handcrafted", "SlotFilling-act-v0", 40, (0,), kwargs)
    point = NOISE.success("Restaurants", "handcrafted", "set3", 0.4, 40)
    assert point == result.overall.solved.sum()
    assert 0 < point < 40


def test_a_legend_says_which_domain_it_is(data, monkeypatch):
    assert NOISE.label("CamRestaurants") == "Restaurants (built-in)"
    monkeypatch.setenv("DIALGYM_PYDIAL", str(data / "pydial"))
    assert NOISE.label("CamRestaurants") == "CamRestaurants"


FIGURES = {"dialogues": 100, "percents": [0, 10], "successes": {"one": [100, 90], "two": [80, 50]}}


def test_the_table_has_a_row_for_each_curve():
    lines = NOISE.table(FIGURES).splitlines()
    assert lines[0] == "| domain | 0 % | 10 % |"
    assert lines[2:] == [
        "| one | 100.0 [96.3, 100.0] | 90.0 [82.6, 94.5] |",
        "| two | 80.0 [71.1, 86.7] | 50.0 [40.4, 59.6] |",
    ]


def test_the_picture_shows_every_point_and_interval():
    pytest.importorskip("matplotlib")
    (axes,) = NOISE.draw(FIGURES).axes
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["one", "two"]
    for drawn, shares in zip(axes.containers, NOISE.curves(FIGURES).values()):
        line, _, (bars,) = drawn.lines
        assert list(line.get_ydata()) == [100 * share.value for share in shares]
        ends = [(low[1], high[1]) for low, high in bars.get_segments()]
        for end, share in zip(ends, shares):
            assert end == pytest.approx((100 * share.low, 100 * share.high))
    first, second = (drawn.lines[0] for drawn in axes.containers)
    assert (first.get_xdata() != second.get_xdata()).all()
    assert first.get_color() != second.get_color()


def test_the_script_prints_records_and_draws(tmp_path, monkeypatch, capsys):
    pytest.importorskip("matplotlib")
    out = tmp_path / "pictures" / "noise.png"
    options = ["--out", out, "--records", tmp_path, "--episodes", 5, "--most", 10]
    more = ["--domains", "CamRestaurants", "Transport"]
    monkeypatch.setattr(sys, "argv", ["noise_curve.py", *map(str, options), *more])
    NOISE.main()
    text = NOISE.table(read_record("noise", tmp_path)["figures"])
    assert text in capsys.readouterr().out
    assert [line.split(" | ")[0] for line in text.splitlines()[2:]] == [
        "| Restaurants (built-in)",
        "| Transport (built-in)",
    ]
    assert out.read_bytes().startswith(PNG)


def test_picture_and_table_in_the_documentation_are_of_the_real_domains():
    page = (ROOT / "docs" / "slot_filling.md").read_text()
    (picture,) = re.findall(r"\((images/.*\.png)\)", page)
    assert (ROOT / "docs" / picture).read_bytes().startswith(PNG)
    tables = re.findall(r'--8<-- "(.*)"', page)
    assert tables == ["docs/results/slot_filling.md", "docs/results/noise.md"]
    rows = (ROOT / tables[1]).read_text().splitlines()[2:]
    cells = [row.strip("| ").split(" | ") for row in rows]
    assert tuple(row[0] for row in cells) == NOISE.DOMAINS
    known = {NOISE.shown(wilson(count / 2000, 2000)) for count in range(2001)}
    for row in cells:
        shares = [float(cell.split()[0]) for cell in row[1:]]
        assert shares == sorted(shares, reverse=True)
        assert known.issuperset(row[1:])
