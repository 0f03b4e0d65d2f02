"""The recipe of multi-domain dialogue: every step once, briefly."""

import json

import numpy as np
import pytest

import agents
import dialgym
from benchmarks.recipes import multiwoz, multiwoz_offline, multiwoz_users, multiwoz_words
from benchmarks.recipes.runs import perform
from benchmarks.recipes.tables import lines, markdown

STARTS = {"maskable-ppo", "pg", "gdpl", "madpl"}


def test_what_plays_begins_with_what_was_cloned_before_it(tmp_path):
    runs = multiwoz.runs(tmp_path, 2)
    assert len({run.folder for run in runs}) == len(runs) == 18
    for before, run in enumerate(runs):
        assert run.env_kwargs == {"goals": "test"}
        if start := run.settings.get("init_from"):
            assert start in [other.model for other in runs[:before]]
            assert start.parent.parent == run.folder.parent


@pytest.mark.slow
def test_every_method_is_trained_and_scored_and_meets_every_user(tmp_path, monkeypatch):
    small = {
        "FEW": 3,
        "MANY": 5,
        "STEPS": 2,
        "FEW_STEPS": 2,
        "TURNS": 64,
        "TURNS_OF_PAIRS": 32,
        "EPISODES": 4,
    }
    for name, value in small.items():
        monkeypatch.setattr(multiwoz, name, value)
    monkeypatch.setattr(multiwoz_users, "EPISODES", 2)
    runs = multiwoz.runs(tmp_path, 1)
    table = lines(perform(runs, multiwoz.EPISODES))
    assert len(table) == len(runs) == 9
    shown = markdown(table, multiwoz.COLUMNS, multiwoz.BASE)
    assert len(shown.splitlines()) == 2 + len(runs)
    users = multiwoz_users.USERS
    crossed = multiwoz.MORE(table).splitlines()
    assert crossed[0].split(" | ")[1:] == [*users[:-1], users[-1] + " |"]
    assert len(crossed) == 2 + 1 + len(runs)
    kept = json.loads((runs[0].folder / multiwoz_users.KEPT).read_text("utf-8"))
    assert kept.keys() == {*users}
    assert np.isfinite([*kept.values()]).all()
    multiwoz.PLOT(table, tmp_path / "users.png")
    assert (tmp_path / "users.png").read_bytes()[:4] == b"\x89PNG"
    kinds = {type(agents.load(run.model)).__name__ for run in runs}
    assert kinds == {"MLE", "MaskablePPO", "PG", "GDPL", "DQN", "MADPL"}


@pytest.mark.slow
def test_gpts_are_cloned_and_learn_in_words(tmp_path, monkeypatch):
    small = {"DIALOGUES": 3, "STEPS": 2, "TOKENS": 64, "EPISODES": 4}
    for name, value in small.items():
        monkeypatch.setattr(multiwoz_words, name, value)
    monkeypatch.setattr(
        multiwoz_words, "PLAYED", {**multiwoz_words.PLAYED, "n_envs": 2, "n_steps": 8}
    )
    table = lines(perform(multiwoz_words.runs(tmp_path, 2), multiwoz_words.EPISODES))
    assert [line.method for line in table] == ["BC", "SequencePPO from BC"]
    assert "PPO less the clone of the same seed" in multiwoz_words.gain(table)


@pytest.mark.slow
def test_offline_learners_see_what_the_logging_system_played(tmp_path, monkeypatch):
    small = {"FEW": 3, "FEW_STEPS": 2, "LOGGED": 4, "STEPS": 2, "EPISODES": 4}
    for name, value in small.items():
        monkeypatch.setattr(multiwoz_offline, name, value)
    table = lines(perform(multiwoz_offline.runs(tmp_path, 1), multiwoz_offline.EPISODES))
    assert [line.method for line in table] == ["logging system", *multiwoz_offline.METHODS]
    logged = dialgym.load_dataset(tmp_path / "seed0" / "logged")
    assert len(logged) == 4
    assert logged[0]["turns"]
