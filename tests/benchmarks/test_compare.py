"""Two checkouts measured in turns: ratios above 1 are faster, whatever the unit."""

from pathlib import Path

import pytest

from benchmarks import compare

ROOT = Path(__file__).parents[2]


def test_ratios_are_of_turns_and_above_one_where_faster(monkeypatch):
    clock = iter([(100.0, 2.0), (150.0, 1.0), (50.0, 4.0), (60.0, 2.0), (10.0, 1.0), (30.0, 1.0)])

    def measured(side, part, repeats, seconds):
        rate, time = next(clock)
        return {"steps": (rate, "/s"), "import": (time, "s"), side.name: (1.0, "/s")}

    monkeypatch.setattr(compare, "measured", measured)
    rows = compare.compare(Path("before"), Path("after"), "steps", 3, 1, 0.0)
    assert rows == [("import", 2.0, 1.0, 2.0), ("steps", 50.0, 60.0, 1.5)]


def test_a_checkout_measures_itself():
    found = compare.measured(ROOT, "imports", repeats=1, seconds=0.0)
    assert set(found) == {"import gymnasium", "import dialgym"}
    assert all(value > 0 and unit == "s" for value, unit in found.values())


def test_what_fails_says_where_and_why(tmp_path):
    home = tmp_path / "benchmarks" / "environments"
    home.mkdir(parents=True)
    for package in (home, home.parent):
        (package / "__init__.py").touch()
    (home / "__main__.py").write_text("raise ArithmeticError('no clock')")
    message = r"measuring imports in .* failed: ArithmeticError: no clock"
    with pytest.raises(RuntimeError, match=message):
        compare.measured(tmp_path, "imports", 1, 0.0)
