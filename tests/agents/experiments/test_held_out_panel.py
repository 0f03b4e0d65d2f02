"""A tiny panel of replies from end to end: learned on one split, scored and measured on another."""

import json

import pytest

pytest.importorskip("stable_baselines3")
pytest.importorskip("pyarrow")
pytest.importorskip("sacrebleu")
from agents.experiments.panel_jobs import jobs_of
from agents.experiments.run import run_jobs
from dialgym.experiments.row_files import read_rows
from tests.support.commands import succeed
from tests.support.tiny_language import TINY
from tests.support.tiny_panel import install


@pytest.fixture(autouse=True)
def tiny(monkeypatch):
    install(monkeypatch, TINY)


def test_models_learn_on_one_split_and_are_measured_on_another(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = ["random", "bc", "bc-ppo"]
    _, failures = run_jobs(jobs_of(TINY, names, TINY.environments[:1], [0], tmp_path), 0)
    assert not failures
    rows = {row.name: row for row in read_rows([tmp_path], TINY)}
    assert {*rows} == {*names}
    for name in ("bc", "bc-ppo"):
        row = rows[name].values
        assert row["env_kwargs"] == {"rewards": {"length": 1.0}}
        assert row["held_out"] == {"split": "test"}
        assert set(row["measures"]) == {"drawn", "greedy"}
        run = json.loads((rows[name].file.with_suffix("") / "run.json").read_text("utf-8"))
        assert "split" not in run["env_kwargs"]
    where = ["--results", str(tmp_path)]
    text = succeed("leaderboard", "show", "replies", *where)
    assert "| bc (greedy) | " in text.split("### ")[1]
    assert "| bc (drawn) | " in text.split("### ")[1]
    text = succeed("leaderboard", "compare", "replies", "bc-ppo", "bc", *where)
    assert text.count("| distinct2 | drawn | ") == text.count("| distinct2 | greedy | ") == 1
    checked = succeed("leaderboard", "check", str(tmp_path / "replies"), "--replay")
    assert checked.count("played again alike") == 3
