"""Rows that are scored on held-out dialogues, and what is measured of their replies."""

import copy
import json
import re
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("nltk")
pytest.importorskip("sacrebleu")
pytest.importorskip("scipy")
from dialgym.experiments.measure_tables import (
    measure_row,
    measures_as_markdown,
    over_replies,
)
from dialgym.experiments.measures import measure_replies, replies_of
from dialgym.experiments.pages import write_ranking
from dialgym.experiments.panel import Panel
from dialgym.experiments.panel_tables import compare_rows, ranking_as_markdown
from dialgym.experiments.protocol import environment_hashes, replay_row, score_policy
from dialgym.experiments.ranking import Ranking, SeedScores
from dialgym.experiments.row import ExperimentRow, protocol_of
from dialgym.experiments.row_checks import row_problems
from dialgym.experiments.row_files import read_row
from dialgym.io.checksums import ENTRY
from dialgym.rewards.metrics import ReplyMetrics
from dialgym.rollouts.player import Player
from tests.support.tiny_language import MEASURES, TINY, VALUES
from tests.support.tiny_panel import install

PLACE, COMMENTS = TINY.environments


class Parrot:
    """Says the same whatever it hears."""

    def __init__(self, text="What would you like to do about it?"):
        self.text = text

    def reply(self, task, state, rng):
        return self.text


@pytest.fixture(autouse=True)
def tiny(monkeypatch):
    install(monkeypatch, TINY)


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """Rows of `random` and of a parrot, two seeds each."""
    out = tmp_path_factory.mktemp("rows")
    with pytest.MonkeyPatch.context() as monkeypatch:
        install(monkeypatch, TINY)
        return [
            read_row(score_policy(TINY, PLACE, policy, name, seed, out, "scripted"))
            for name, policy in (("random", "random"), ("parrot", Parrot()))
            for seed in (0, 1)
        ]


def test_policies_are_scored_in_other_settings_than_they_learn_in():
    assert PLACE.settings == {"rewards": {"length": 1.0}}
    assert PLACE.scoring_settings == {"rewards": {"length": 1.0}, "split": "test"}
    own = copy.deepcopy(VALUES)
    own["environments"][1]["held_out"] = {"split": "validation"}
    first, second = Panel.of("x", own).environments
    assert (first.held_out["split"], second.held_out["split"]) == ("test", "validation")


def test_the_protocol_follows_what_is_held_out_and_measured():
    found = {protocol_of(TINY, PLACE)}
    for entries in ({"held_out": {}}, {"held_out": {"split": "validation"}}):
        other = Panel.of("replies", {**VALUES, **entries})
        found.add(protocol_of(other, other.environments[0]))
    fewer = copy.deepcopy(VALUES)
    fewer["environments"][0]["measures"] = ["words"]
    found.add(protocol_of(Panel.of("replies", fewer), Panel.of("replies", fewer).environments[0]))
    assert len(found) == 4


def test_the_fingerprint_is_of_the_held_out_dialogues():
    training = Panel.of("replies", {**VALUES, "held_out": {}})
    here, there = (
        environment_hashes(TINY, PLACE),
        environment_hashes(training, training.environments[0]),
    )
    assert here["rules"]["dialogues"] != there["rules"]["dialogues"]


def test_a_row_has_the_measures_of_the_replies_that_it_is_scored_by(rows):
    row = rows[0].values
    assert row["held_out"] == {"split": "test"}
    part = row["measures"]["scripted"]
    assert [*part["figures"]] == MEASURES
    assert [*part["replies"]] == ["judge", "meteor", "words"]
    player = Player(PLACE.id, "random", PLACE.scoring_settings, record=True)
    said = []
    for played in player.play([(77, episode) for episode in range(12)]):
        lines = zip(played.turns.text, played.turns.said)
        said += zip(played.seeds, [text for text, own in lines if own], strict=True)
    replies = [player.task.first_reply(seed, text) for seed, text in said]
    metrics = ReplyMetrics(["meteor", "sacrebleu", "distinct2", "words"])
    for name, value in metrics.values(replies).items():
        assert part["figures"][name] == pytest.approx(value, abs=1e-3), name
    assert part["replies"]["words"] == metrics.per_reply(replies)["words"].tolist()
    assert part["figures"]["judge"] == player.task.judge().score(replies).mean().round(6)


def test_rows_of_other_panels_keep_their_form(monkeypatch, tmp_path):
    from tests.support.tiny_panel import TINY as WORDLE

    install(monkeypatch)
    row = read_row(score_policy(WORDLE, WORDLE.environments[0], "random", "x", 0, tmp_path))
    assert {"measures", "held_out"}.isdisjoint(row.values)


def test_a_row_plays_again_alike_and_other_measures_are_found(rows):
    row = rows[0]
    assert replay_row(row, "random") == []
    changed = copy.deepcopy(dict(row.values))
    changed["measures"]["scripted"]["figures"]["distinct2"] = 0.01
    (text,) = replay_row(ExperimentRow(changed, row.file), "random")
    assert text.startswith("scripted, measures, distinct2: 0.01 in the file, ")


def drop(part, *path):
    *above, last = path
    for name in above:
        part = part[name]
    del part[last]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: m["replies"]["meteor"].pop(), "replies, meteor: expected 12 finite numbers"),
        (lambda m: m["replies"]["words"].__setitem__(0, 90), "words: expected the mean of the rep"),
        (lambda m: m["replies"]["words"].__setitem__(0, 10**400), "words: expected 12 finite num"),
        (lambda m: m["figures"].update(words=10**400), "figures, words: expected a finite number"),
        (lambda m: drop(m, "figures", "judge"), "figures: expected judge, meteor, .*got"),
        (lambda m: drop(m, "replies", "judge"), "replies: expected judge, meteor, words, got"),
        (lambda m: drop(m, "replies"), "measures, scripted: expected replies and figures"),
        (lambda m: m.update(figures=None), "figures: expected judge, meteor, .*got None"),
        (lambda m: m["figures"].update(sacrebleu=np.nan), "sacrebleu: expected a finite number"),
    ],
)
def test_measures_that_do_not_fit_are_found(rows, change, message):
    values = json.loads(rows[0].file.read_text("utf-8"))
    values.pop(ENTRY)
    assert [*row_problems(values)] == []
    change(values["measures"]["scripted"])
    (text,) = row_problems(values)
    assert text.startswith("measures, scripted")
    assert re.search(message, text), text


def test_a_row_without_measures_is_not_whole(rows):
    values = {k: v for k, v in rows[0].values.items() if k != "measures"}
    assert [*row_problems(values)] == [
        "measures: expected " + ", ".join(MEASURES) + " for each way, got None"
    ]


def test_unknown_measures_are_refused():
    wrong = copy.deepcopy(VALUES)
    wrong["environments"][0]["measures"] = ["meteo"]
    with pytest.raises(ValueError, match=r"unknown measure 'meteo' in panel 'x', .*'meteor'"):
        Panel.of("x", wrong)


def test_replies_are_measured_in_the_places_that_options_fix():
    player = Player(PLACE.id, "random", PLACE.scoring_settings, record=True)
    (part,) = player.play([(0, 0)], {"index": 7})
    (reply,) = replies_of(player.task, part)
    assert reply.references == player.task.first_reply(0, "", {"index": 7}).references
    with pytest.raises(ValueError, match="the options of their resets"):
        list(replies_of(player.task, replace(part, options=None)))


def test_only_replies_are_measured():
    player = Player("dialgym/Wordle-20-v0", "random", record=True)
    with pytest.raises(ValueError, match="has no replies to be measured by words"):
        measure_replies(player.task, ["words"], player.play([(0, 0)]))


# Tables


def test_measures_stand_below_the_table(rows):
    board = Ranking.of(TINY, rows)
    text = ranking_as_markdown(board)
    assert "### replies: DailyDialog-v0" in text
    assert "### replies: Comments-v0" not in text
    assert "| policy | return | judge | meteor | sacrebleu | distinct2 | words |" in text
    (line,) = [
        row for row in measures_as_markdown(board).splitlines() if row.startswith("| parrot")
    ]
    assert "| 8.0 [8.0, 8.0] |" in line
    one = measure_row(board["parrot"], PLACE, "meteor", "scripted")
    kept = [row.values["measures"]["scripted"]["replies"]["meteor"] for row in rows[2:]]
    assert one.scores[PLACE.id].values.tolist() == kept
    assert measure_row(board["parrot"], PLACE, "meteor", "drawn") is None
    assert measure_row(board["parrot"], COMMENTS, "judge", "scripted") is None


def test_the_page_has_the_measures_too(rows, tmp_path):
    write_ranking(tmp_path / "page.html", Ranking.of(TINY, rows))
    text = (tmp_path / "page.html").read_text("utf-8")
    assert '<section id="measures">' in text
    assert "<h3>replies: DailyDialog-v0</h3>" in text
    assert '<th>policy<th class="n">return<th class="n">judge' in text
    assert '<tr><td>parrot<td class="n">' in text
    assert "8.0 [8.0,&nbsp;8.0]" in text


def test_differences_are_said_for_each_measure(rows):
    board = Ranking.of(TINY, rows)
    text = compare_rows(board, "parrot", "random")
    lines = [
        line.split(" | ") for line in text.splitlines() if line.startswith("| DailyDialog-v0 | ")
    ]
    found = {cells[1]: cells for cells in lines if cells[2] == "scripted"}
    assert [*found] == ["return", *MEASURES]
    gained = [
        np.mean([r.values["measures"]["scripted"]["figures"]["distinct2"] for r in part])
        for part in (rows[2:], rows[:2])
    ]
    assert found["distinct2"][5].startswith(f"{gained[0] - gained[1]:.3f} [")
    assert found["distinct2"][6] == "-"
    assert found["words"][6].startswith("[")
    assert found["distinct2"][7] == f"{100 * (gained[0] / gained[1] - 1):+.1f} |"


def test_the_interval_over_replies_is_that_of_their_mean_difference():
    rng = np.random.default_rng(0)
    one, other = rng.normal(0.3, 1, (3, 400)), rng.normal(0.0, 1, (3, 400))
    low, high = over_replies(SeedScores((0, 1, 2), one), SeedScores((0, 1, 2), other))
    half = 1.96 * np.sqrt(2 / 1200)
    middle = (one - other).mean()
    assert (low, high) == pytest.approx((middle - half, middle + half), abs=0.01)
    assert over_replies(SeedScores((0, 1, 2), one), SeedScores((0, 1, 3), other)) is None
    assert over_replies(SeedScores((0,), one[:1, :1]), SeedScores((0,), other[:1, :1])) is None
