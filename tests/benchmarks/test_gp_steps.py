"""The table of what a step of GP-SARSA costs is of what was recorded."""

import sys

from benchmarks.tables.records import read_record
from benchmarks.training import gp


def test_the_command_records_each_curve_and_prints_the_table(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(gp, "SIZES", (64, 128))
    monkeypatch.setattr(gp, "milliseconds", lambda step: step() is None or 0.25)
    monkeypatch.setattr(sys, "argv", ["gp", "--records", str(tmp_path)])
    gp.main()
    figures = read_record("gp_steps", tmp_path)["figures"]
    assert figures["sizes"] == [64, 128]
    assert len(figures["milliseconds"]) == 5
    printed = capsys.readouterr().out
    assert printed == gp.table(figures)
    assert printed.startswith("| ms of CPU, entries in all: | 64 | 128 |\n")
    assert f"CPU: {figures['machine']['CPU']}" in printed
