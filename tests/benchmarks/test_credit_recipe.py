"""The recipe of credit: every learner is trained, and its credit judged."""

import json

import pytest

from benchmarks.recipes import credit
from benchmarks.recipes.runs import perform
from benchmarks.recipes.tables import lines, markdown

QUICK = ("GRPO, situations",)


@pytest.mark.parametrize(
    "method",
    [pytest.param(m, marks=() if m.name in QUICK else pytest.mark.slow) for m in credit.METHODS],
    ids=lambda method: method.name,
)
def test_each_method_is_judged(method, tmp_path, monkeypatch):
    small = {"METHODS": (method,), "TOKENS": 600, "GAMES": 20, "STEPS": 2}
    for name, value in {**small, "DIALOGUES": 16, "CONTINUATIONS": 2}.items():
        monkeypatch.setattr(credit, name, value)
    monkeypatch.setitem(credit.GROUPS, "n_envs", 16)
    scores = perform(credit.runs(tmp_path, seeds=1), episodes=4)
    found = json.loads((scores[0].run.folder / credit.CREDIT).read_text("utf-8"))
    assert found["turns"] >= 16
    assert -1 <= found["correlation"] <= 1
    text = markdown(lines(scores), credit.COLUMNS, credit.BASE)
    assert f"| {method.name} | 1 |" in text
