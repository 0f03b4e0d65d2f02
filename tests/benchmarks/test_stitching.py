"""Learners as tables of stored dialogues."""

import sys

import pytest

import dialgym
from benchmarks.tables import stitching
from benchmarks.tables.records import read_record
from benchmarks.tables.stitching import LEAST, Said, by_values, clone, mean_return, utterances

BEGIN, OPENED = ("",), ("", "a", "yes")


def data() -> list[Said]:
    """Said first: `a`, which is worth more than `b` to those alone who go on well."""
    well, badly = LEAST, 4 * LEAST
    return [
        *[Said(BEGIN, "a", -1.0, OPENED)] * (well + badly),
        *[Said(OPENED, "good", 0.0, None)] * well,
        *[Said(OPENED, "bad", -5.0, None)] * badly,
        *[Said(BEGIN, "b", -3.0, None)] * (well + badly + 1),
        *[Said(BEGIN, "luck", 0.0, None)] * (LEAST - 1),
    ]


def test_a_clone_says_what_was_said_most():
    assert clone(data()) == {BEGIN: "b", OPENED: "bad"}


def test_values_of_the_data_hide_what_a_good_opening_is_worth():
    assert by_values(data(), q_learning=False) == {BEGIN: "b", OPENED: "good"}


def test_q_learning_puts_the_pieces_together():
    assert by_values(data(), q_learning=True) == {BEGIN: "a", OPENED: "good"}


def test_what_was_seldom_said_is_not_believed():
    few = [*[Said(BEGIN, "x", 0.0, None)], *[Said(BEGIN, "y", -1.0, None)] * 2]
    assert by_values(few, q_learning=True) == {BEGIN: "y"}


def test_the_clone_of_the_optimal_policy_is_optimal_with_every_secret():
    best = dialgym.collect("Wordle-Alike-v0", "optimal", 60)
    assert mean_return("Wordle-Alike-v0", clone(utterances(best))) == pytest.approx(-5 / 6)


def test_the_script_records_every_set_and_prints_the_table_of_the_record(
    monkeypatch, tmp_path, capsys
):
    monkeypatch.setattr(stitching, "ENVIRONMENTS", ("Wordle-Alike-v0",))
    monkeypatch.setattr(stitching, "SEEDS", range(2))
    options = ["--episodes", "60", "240", "--records", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", ["stitching", *options])
    stitching.main()
    figures = read_record("stitching", tmp_path)["figures"]
    assert [(one["dialogues"], len(one["stored"])) for one in figures["Wordle-Alike-v0"]] == [
        (60, 2), (240, 2)
    ]  # fmt: skip
    printed = capsys.readouterr().out
    assert printed == f"{stitching.table(figures)}\n"
    (first, *_), (gain, *_) = zip(*stitching.rows(figures), strict=True)
    learned = figures["Wordle-Alike-v0"][0]["learned"]
    assert float(first[-2]) == pytest.approx((learned[0][-1] + learned[1][-1]) / 2, abs=0.006)
    difference = sum(one[-1] - one[0] for one in learned) / 2
    assert float(gain[2].split()[0]) == pytest.approx(difference, abs=0.006)
