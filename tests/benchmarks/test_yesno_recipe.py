"""The recipe of yes/no penalties: every method is trained, scored and told apart by its setting."""

from dataclasses import replace

import numpy as np
import pytest

import agents
import dialgym
from agents.experiments.job import RESULT
from benchmarks.recipes import yesno
from benchmarks.recipes.offline import Method, Variant
from benchmarks.recipes.runs import Run, Score, perform, select
from benchmarks.recipes.tables import lines, markdown

QUICK = ("BC", "ILQL", "ILQL, beta 16")
TINY = {"batch_size": 4, "policy_kwargs": {"n_layer": 1, "n_head": 1, "n_embd": 8}}


def tiny(method):
    if isinstance(method, Variant):
        return method
    kwargs = {**method.overrides.get("policy_kwargs", {}), **TINY["policy_kwargs"]}
    steps = {"n_timesteps": 2} | ({"clone_steps": 1} if method.algo == "chai" else {})
    return replace(method, overrides={**method.overrides, **TINY, **steps, "policy_kwargs": kwargs})


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(yesno, "SCENES", 4)
    monkeypatch.setattr(yesno, "PEOPLE", 6)
    for methods in ("METHODS", "NO_EXPERT"):
        monkeypatch.setattr(yesno, methods, tuple(map(tiny, getattr(yesno, methods))))


def test_learners_of_a_penalty_are_trained_and_scored_under_it(small, tmp_path):
    planned = select(yesno.runs(tmp_path, 2), [f"hard: {name}" for name in QUICK])
    table = lines(perform(planned, episodes=6))
    assert [line.method for line in table] == [f"hard: {name}" for name in QUICK]
    shown = markdown(table, yesno.COLUMNS, yesno.BASE).splitlines()
    assert shown[0] == (
        "| method | seeds | return | found | percentile rank | questions | just yes or no |"
    )
    assert shown[2].startswith("| hard: BC | 2 | -")
    games = dialgym.load_dataset(tmp_path / "hard" / "games-seed1")
    assert len(games) == 4 * 10
    for turns in games["turns"]:  # the price of a question, unless it finds, and the penalty
        for said, heard in zip(turns[1::2], turns[2::2]):
            assert said["reward"] in ((-2, -3) if heard["text"] in ("yes", "no") else (0, -1))
    assert planned[0].env_kwargs == {"tokenizer": "word", "penalty": "hard"}
    betas = [agents.load(run.model).policy.decoding.beta for run in planned[1:3]]
    assert betas == [yesno.BETA, 16.0]


def test_nobody_asks_well_in_the_data_without_an_expert(small, tmp_path):
    planned = select(yesno.runs(tmp_path, 1), ["hard, no expert: ILQL*"])
    table = lines(perform(planned, episodes=4))
    assert [line.method for line in table] == [run.method for run in planned]
    games = dialgym.load_dataset(tmp_path / "no-expert" / "games-seed0")
    assert set(games["kind"]) == {"human-like", "random"}
    assert agents.load(planned[1].model).policy.decoding.beta == 64.0


def test_scripted_questioners_are_scored_beside_them(small, tmp_path):
    planned = select(yesno.runs(tmp_path, 1), ["hard: human-like", "*: greedy"])
    table = {line.method: line for line in lines(perform(planned, episodes=40))}
    assert set(table) == {"hard: human-like", *(f"{p}: greedy" for p in yesno.PENALTIES)}
    human, greedy = table["hard: human-like"], table["hard: greedy"]
    assert yesno.yes_no(human).mean() > 0.5 > 0.1 > yesno.yes_no(greedy).mean()
    assert greedy.means > human.means + 2
    turns, said = human.metrics["turns"], yesno.yes_no(human)
    found = human.solved
    assert np.allclose(human.returns, -(turns - found) - 2 * said)  # the rules, by what is measured
    again = lines(perform(planned, episodes=40))  # from what was kept
    assert markdown(again, yesno.COLUMNS, ()) == markdown(list(table.values()), yesno.COLUMNS, ())
    assert (planned[0].folder / RESULT).is_file()


def test_every_method_is_planned_under_every_penalty(tmp_path):
    planned = yesno.runs(tmp_path, 3)
    rows = 3 * (len(yesno.METHODS) + len(yesno.SCRIPTED)) + len(yesno.NO_EXPERT)
    assert len({run.folder for run in planned}) == len(planned) == 3 * rows
    assert len(lines([Score(r, np.zeros(1), np.zeros(1)) for r in planned])) == rows
    for run in planned:
        assert run.method.startswith(run.env_kwargs["penalty"])
        method = run.settings and run.settings[1]
        if isinstance(method, Variant):  # it stands after what it is of
            before = planned[: planned.index(run)]
            assert any(r.seed == run.seed and r.settings and r.settings[1].name == method.of
                       and r.env_kwargs == run.env_kwargs for r in before)  # fmt: skip


def test_what_is_chosen_has_to_be_there(tmp_path):
    planned = yesno.runs(tmp_path, 1)
    assert [run.method for run in select(planned, ["*: BC"])] == [
        *(f"{penalty}: BC" for penalty in yesno.PENALTIES),
        "hard, no expert: BC",
    ]
    with pytest.raises(ValueError, match=r"unknown method .hard: ILQ. in --only\. Did you mean"):
        select(planned, ["hard: ILQ"])


def test_a_table_has_the_metrics_that_all_seeds_have():
    runs = [Run("a", yesno.ENV, seed, None, None) for seed in (0, 1)]
    one = Score(runs[0], np.zeros(2), np.ones(2), {"turns": np.array([1, 2]), "x": np.ones(2)})
    other = Score(runs[1], np.zeros(2), np.ones(2), {"turns": np.array([3, 4])})
    (line,) = lines([one, other])
    assert {name: rows.tolist() for name, rows in line.metrics.items()} == {
        "turns": [[1, 2], [3, 4]]
    }


@pytest.mark.slow
@pytest.mark.parametrize("method", yesno.METHODS, ids=lambda method: method.name)
def test_each_method_runs(small, method, tmp_path):
    wanted = [method.of, method.name] if isinstance(method, Variant) else [method.name]
    planned = select(yesno.runs(tmp_path, 1), [f"conservative: {name}" for name in wanted])
    assert lines(perform(planned, episodes=3))[-1].method == f"conservative: {method.name}"
    assert isinstance(planned[0].settings[1], Method)
