"""Learners of persuasion on a corpus of a few lines."""

import csv
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("stable_baselines3")
from benchmarks.recipes.job import jobs_of, perform
from benchmarks.recipes.persuasion import people, rows
from tests.benchmarks.test_recipe_trainings import small

DIALOGUES = 24


@pytest.fixture
def corpus(tmp_path, monkeypatch):
    """Dialogues of four utterances, of which number i earned i dimes, and the last 700 dollars."""
    said, given = [["Unit", "B4", "B2"]], [["B2", "B4", "B6"]]
    for i in range(DIALOGUES):
        name = f"dialogue {i}"
        for turn in range(2):
            said += [[f"Would you give {i} dimes?", 0, name], [f"Perhaps, {turn}.", 1, name]]
        given += [[name, 0, 9], [name, 1, 700 if i == DIALOGUES - 1 else i / 10]]
    for file, lines in (("full_dialog.csv", said), ("donation.csv", given)):
        with (tmp_path / file).open("w", newline="") as stream:
            csv.writer(stream).writerows(lines)
    monkeypatch.setenv("DIALGYM_PERSUASION", str(tmp_path))
    return tmp_path


def test_rows_have_the_donation_of_the_other_party_and_a_split(corpus):
    found = list(rows(corpus))
    assert [row["rating"] for row in found[:3]] == [0.0, 0.1, 0.2]
    assert found[-1]["rating"] == 2.0
    assert [turn["speaker"] for turn in found[0]["turns"]] == ["persuader", "user"] * 2
    splits = [row["split"] for row in found]
    assert {*splits} == {"train", "test"}
    assert splits == [row["split"] for row in rows(corpus)]


def test_without_the_folder_the_message_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.delenv("DIALGYM_PERSUASION", raising=False)
    [job] = jobs_of(small("persuasion"), tmp_path / "runs", tmp_path / "rows", 1, ["people"])
    with pytest.raises(ValueError, match=r"expected \$DIALGYM_PERSUASION to name the folder"):
        people(job, "train")


@pytest.mark.slow
def test_learners_are_estimated_on_what_was_held_out(corpus, tmp_path):
    recipe = small("persuasion", 2, sizes={"utterance_tokens": 16, "window": 64})
    recipe = replace(recipe, options={**recipe.options, "evaluation": {"groups": 2, "ridge": 10.0}})
    jobs = jobs_of(recipe, tmp_path / "runs", tmp_path / "rows", 1, ["BC", "people", "CQL"])
    cloned, of_people, learned = (row["measured"] for row in perform(jobs).values())
    held_out = [row["rating"] for row in rows(corpus) if row["split"] == "test"]
    assert of_people["value"] == pytest.approx(np.mean(held_out), abs=1e-5)
    assert of_people["likeness"] == 1.0
    for found in (cloned, learned):
        assert {*found} >= {"likeness", "value", "error", "again", "weighted", "size"}
        assert np.isfinite([*found.values()]).all()
        assert 1 <= found["size"] <= len(held_out) + 1e-6
    assert cloned["weighted"] == pytest.approx(of_people["value"], abs=1e-4)
    assert cloned["value"] != cloned["again"]
    assert cloned["above"] == cloned["above, error"] == 0
    assert learned["above"] == pytest.approx(learned["value"] - cloned["value"], abs=1e-5)
