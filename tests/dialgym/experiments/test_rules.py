"""Fingerprints of rules: what keeps them, what changes them, and which rows are older."""

import os
import subprocess
import sys
from dataclasses import replace

import pytest

from dialgym.experiments.rules import Fingerprint, RowOrigin, older_rules, rules_of
from dialgym.registry import entry_of
from dialgym.tasks.slot_filling import SlotFilling
from dialgym.tasks.wordle import Wordle
from tests.support.older_rows import OTHER
from tests.support.slot_domains import write_bakeries

WORDLE, WORDS = "dialgym/Wordle-20-v0", "dialgym/SlotFilling-v0"


def test_they_are_the_same_in_another_process():
    """The order of sets plays no part."""
    ids = [WORDLE, WORDS, "dialgym/SlotFilling-act-v0"]
    code = f"from dialgym.experiments.rules import rules_of; print(*map(rules_of, {ids}))"
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONHASHSEED": "1"},
    )  # fmt: skip
    assert [Fingerprint.parse(text) for text in found.stdout.split()] == [*map(rules_of, ids)]


def test_they_are_of_the_version_the_settings_and_the_dialogues(monkeypatch):
    plain, harder = rules_of(WORDLE), rules_of(WORDLE, {"hard_mode": True})
    assert plain.task_version == Wordle.version
    assert len({each.settings for each in (plain, harder, rules_of(WORDS))}) == 3
    assert len({each.dialogues for each in (plain, harder, rules_of(WORDS))}) == 3
    monkeypatch.setattr(Wordle, "version", 2)
    assert rules_of(WORDLE) == plain._replace(task_version=2)


class Refactored(SlotFilling):
    """The same rules in another class."""


class Costlier(SlotFilling):
    def __init__(self, domain="Restaurants"):
        super().__init__(domain, rewards={"turn": -1.5})


class Silent(SlotFilling):
    """The system's act is never understood."""

    def speak(self, state, text, rng):
        return super().speak(state, "" if self.speaker(state) == "system" else text, rng)


class Lenient(SlotFilling):
    """Any dialogue is a success."""

    def _end(self, state, last):
        return self.rewards.at_end(last, True)


def test_a_refactoring_keeps_the_dialogues_and_a_change_of_behaviour_does_not():
    row = replace(entry_of(WORDS).row, settings={}, view_settings={})
    entries = [
        replace(entry_of(WORDS), row=replace(row, task=kind))
        for kind in (SlotFilling, Refactored, Costlier, Silent, Lenient)
    ]
    first, same, *others = [rules_of(entry).dialogues for entry in entries]
    assert first == same
    assert len({first, *others}) == 4


def test_files_count_by_what_they_hold_not_where_they_lie(tmp_path):
    places = [tmp_path / name for name in "ab"]
    found = []
    for place in places:
        place.mkdir()
        found.append(rules_of(SlotFilling(write_bakeries(place, "area"))))
    assert found[0] == found[1]
    file = places[1] / "area.yml"
    file.write_text(file.read_text().replace("bread", "rolls"))
    assert rules_of(SlotFilling(str(file))).dialogues != found[0].dialogues


def test_they_are_spelled_and_read():
    found = rules_of(WORDLE)
    assert Fingerprint.parse(str(found)) == Fingerprint.of_values(found._asdict()) == found
    for text in ("", "1", "1-ab-cd", f"x-{'0' * 16}-{'0' * 16}", f"{found}-"):
        with pytest.raises(ValueError, match="rules: expected a version and two hashes of 16 hex"):
            Fingerprint.parse(text)


@pytest.mark.parametrize(
    ("rules", "stand_in", "older"),
    [
        (lambda here: here, None, False),
        (lambda here: None, None, True),
        (lambda here: here._replace(task_version=2), None, True),
        (lambda here: here._replace(settings="0" * 16), None, True),
        (lambda here: here._replace(dialogues="0" * 16), None, True),
        (lambda here: here._replace(dialogues="0" * 16), "built-in", False),  # of other data
        (lambda here: here._replace(task_version=2), "built-in", True),
    ],
)
def test_older_rows_are_told(rules, stand_in, older):
    row = RowOrigin("mine", WORDLE, {}, stand_in, rules(rules_of(WORDLE)))
    assert row.is_older == older


def test_what_cannot_be_played_here_is_not_compared():
    assert not RowOrigin("mine", "dialgym/Gone-v0", {}, None, OTHER).is_older
    assert not RowOrigin("mine", WORDLE, {"words": "nowhere.txt"}, None, OTHER).is_older


def test_a_line_counts_them_by_name():
    here, older = (RowOrigin("b", WORDLE, {}, None, rules) for rules in (rules_of(WORDLE), None))
    assert older_rules([here]) == ""
    assert older_rules([here, older, older, older._replace(name="a")]) == (
        "3 of 4 rows were played by older rules (or name none): a, b (2)."
    )
    assert older_rules([older]) == "1 of 1 row was played by older rules (or name none): b."
