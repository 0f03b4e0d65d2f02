"""Measures of tasks and of replies, with intervals, in every place that shows results."""

import re
from math import isnan

import numpy as np
import pytest

import dialgym
from dialgym.experiments import Result, benchmark
from dialgym.experiments.benchmark import Benchmark
from dialgym.experiments.bootstrap import measured_mean
from dialgym.experiments.metric_tables import metric_tables, metrics_as_markdown
from dialgym.experiments.pages import write_report
from dialgym.experiments.result import Episodes, measured_in
from dialgym.rewards.metrics import ReplyMetrics
from dialgym.rollouts.player import Player
from tests.support.commands import fail, succeed
from tests.support.players import SMALL

CITY, PICTURES, TALK = "MultiWOZ-act-v0", "VisualDialogue-100-v0", "DailyDialog-v0"
MEASURES = ["rouge1", "meteor", "sacrebleu", "distinct2", "intent", "words"]


def test_what_was_not_measured_is_left_out():
    values = np.array([[1.0, 0.0, -1.0, -1.0], [-1.0, -1.0, -1.0, 0.5]])
    found = measured_mean(values)
    assert found.value == 0.5
    assert 0 <= found.low < 0.5 < found.high <= 1
    assert measured_mean(np.full((2, 3), -1.0)) is None
    strata = measured_mean(np.array([[0.0] * 9, [1.0] * 9]))  # each seed is resampled by itself
    assert tuple(strata) == (0.5, 0.5, 0.5)
    assert measured_mean(np.array([[0.0] * 9 + [1.0] * 9])).interval != (0.5, 0.5)


def test_the_tables_have_a_column_for_each_policy():
    policies = {name: name for name in ("rule", "random")}
    outcome = benchmark(policies, [CITY, SMALL], 4, (0, 1), games=0)
    [(label, [head, *rows])] = list(metric_tables(measured_in(outcome.results)))
    assert (label, head) == (f"{CITY} (built-in)", ["measure", "rule", "random"])
    assert [cells[0] for cells in rows][:7] == [
        *("inform_precision", "inform_recall", "inform_f1", "book_rate", "match"),
        *("success_strict", "complete"),
    ]
    part = outcome.results[0][CITY]
    assert rows[0][1].startswith(f"{part.metrics['inform_precision'].mean():.3f} [")
    unasked = [n for n, v in part.metrics.items() if n[:7] == "success" and (v == -1).all()]
    assert unasked
    assert not {*unasked} & {cells[0] for cells in rows}


def test_a_task_that_measures_nothing_has_no_table():
    result = dialgym.evaluate("random", SMALL, 3)
    assert metrics_as_markdown(measured_in([result])) == ""
    assert "measure" not in result.to_markdown()


def test_measures_are_in_files_and_pages(tmp_path):
    outcome = benchmark({"rule": "rule"}, [CITY], 3, (0,), games=0)
    [result] = outcome.results
    cell = re.search(r"\| inform_recall \| (.*) \|", result.to_markdown())[1]
    assert re.fullmatch(r"[\d.]+ \[[\d.]+, [\d.]+\]", cell)
    assert f"| inform_recall | {cell} |" in metrics_as_markdown(measured_in(outcome.results))
    write_report(tmp_path / "r.html", outcome)
    assert "MultiWOZ-act-v0 (built-in): measures" in (tmp_path / "r.html").read_text()
    measured = result.as_dict()["environments"][f"dialgym/{CITY}"]["measured"]
    assert measured["inform_recall"] == list(result[CITY].measured["inform_recall"])


def test_the_commands_print_measures(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Benchmark, "_draw", lambda *_: [])  # pictures: test_results.py
    assert "percentile" in succeed("evaluate", "random", PICTURES, "-n", "2", "--seeds", "0")
    text = succeed("benchmark", "--policies", "random", "--ids", PICTURES, "-n", "2", "--out", "b")
    assert "percentile" in text
    assert "| percentile |" in (tmp_path / "b" / "table.md").read_text()


# Measures of replies


def test_replies_are_measured_as_their_metrics_say(tmp_path):
    result = dialgym.evaluate("random", TALK, 6, (0, 1), measures=MEASURES)
    part = result[TALK]
    assert [*part.measures] == ["rouge1", "meteor", "intent", "words"]
    assert [*part.figures] == ["sacrebleu", "distinct2"]
    assert part.measures["meteor"].shape == (2, 6)
    player = Player(TALK, "random", {}, record=True)
    said = []
    for played in player.play([(seed, episode) for seed in (0, 1) for episode in range(6)]):
        own = [text for text, said in zip(played.turns.text, played.turns.said) if said]
        said += zip(played.seeds, own, strict=True)
    replies = [player.task.first_reply(seed, text) for seed, text in said]
    expected = ReplyMetrics(MEASURES, player.task.examples).values(replies)
    for name in MEASURES:
        assert part.measured[name].value == pytest.approx(expected[name], abs=1e-3), name
    assert part.measured["rouge1"].is_bounded
    assert isnan(part.measured["sacrebleu"].low)
    assert part.dialogues == ()
    result.to_json(tmp_path / "r.json")
    assert Result.from_json(tmp_path / "r.json").to_markdown() == result.to_markdown()


@pytest.mark.parametrize(
    ("env", "names", "message"),
    [
        (TALK, ["rouge"], r"unknown measure 'rouge' in evaluate. Did you mean 'rougeL'"),
        (SMALL, ["words"], "Wordle has no replies to be measured by words"),
    ],
)
def test_measures_that_cannot_be(env, names, message):
    with pytest.raises(ValueError, match=message):
        dialgym.evaluate("random", env, 2, measures=names)


def test_the_command_measures_replies():
    small = ("-n", "2", "--seeds", "0")
    text = succeed("evaluate", "random", TALK, *small, "--measures", "rouge1,sacrebleu,words")
    assert all(name in text for name in ("rouge1", "sacrebleu", "words"))
    assert "unknown measure 'rogue'" in fail("evaluate", "random", TALK, "--measures", "rogue")


def test_a_result_without_measures_has_none():
    part = Episodes(np.zeros((1, 2)), np.zeros((1, 2), bool), np.ones((1, 2), int))
    assert part.measured == {}
