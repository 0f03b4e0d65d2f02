"""Tables of the documentation are those of the committed rows, and each says how it is made."""

import json
from unittest.mock import ANY

import numpy as np
import pytest

pytest.importorskip("stable_baselines3")
from benchmarks.tables import __main__ as tables
from benchmarks.tables import lmrl, lmrl_suite, questions, visual
from benchmarks.tables.__main__ import DOCS, LEADERBOARD, RECORDS, ROWS, commands, differing
from benchmarks.tables.comments import comments_table
from benchmarks.tables.records import counted, from_counts, make_record, read_record
from dialgym.experiments.panel import panel_named
from dialgym.io.checksums import write_json_checked
from tests.support.by_day import at_night, by_day

BRIEF = {"leaderboard_questions": LEADERBOARD["leaderboard_questions"]}


@pytest.mark.parametrize("panels", [BRIEF, at_night(LEADERBOARD)], ids=["brief", "all"])
def test_the_documentation_has_the_tables_of_the_rows(panels, monkeypatch):
    """By day those of few panels, and rules are told apart without playing dialogues for it."""
    if panels is BRIEF:
        monkeypatch.setattr("dialgym.experiments.rules._dialogues", lambda *_: ANY)
        monkeypatch.setattr(tables, "LMRL", {})
        fewer = {name: made for name, made in RECORDS.items() if made is not lmrl_suite}
        monkeypatch.setattr(tables, "RECORDS", fewer)
    assert not differing(panels), "run python -m benchmarks.tables --write"


def test_every_file_of_results_has_a_command():
    assert sorted(commands()) == sorted(file.stem for file in DOCS.glob("*.md"))


def test_the_grid_of_comments_has_the_mean_of_each_learner_and_reward():
    _, _, *lines = comments_table(ROWS).splitlines()
    cells = {
        name: list(map(str.strip, more)) for _, name, *more, _ in (x.split("|") for x in lines)
    }
    shown = cells[" cql "]
    for place, env in enumerate(("Comments", "Comments-Noised", "Comments-Upvotes")):
        files = sorted((ROWS / "comments" / "cql").glob(f"{env}-v0-seed*.json"))
        rows = [json.loads(file.read_text("utf-8"))["episodes"] for file in files]
        for way, cell in zip(("greedy", "drawn"), shown[2 * place :]):
            mean = np.mean([np.mean(row[way]["returns"]) for row in rows])
            assert cell.partition(" ")[0] == f"{mean:.2f}"


# Records of scripted policies


@pytest.mark.parametrize("module", [*RECORDS.values(), lmrl], ids=lambda module: module.NAME)
def test_a_record_has_what_made_it(module):
    record = read_record(module.NAME)
    assert record["command"] == module.COMMAND
    assert record["hardware"]["processor"]
    assert record["cost"]["cpu_seconds"] > 0
    assert record["versions"]["commit"]


@pytest.mark.parametrize("policy", by_day(["random", "greedy"], "greedy"))
def test_a_record_of_questions_is_played_again(policy):
    env_id = "dialgym/TwentyQuestions-8-v0"
    kept = read_record(questions.NAME)["figures"][env_id]["returns"][policy]
    assert counted(questions.played(policy, env_id, 2000)) == kept


@pytest.mark.slow
def test_a_record_of_visual_dialogue_is_played_again():
    kept = read_record(visual.NAME)["figures"]["hard"]["greedy"]
    assert visual.measured("hard", "greedy", 500) == kept


@pytest.mark.slow  # as that of lmrl_suite, which is tried by day
def test_a_record_of_stored_games_is_played_again():
    panel = panel_named("wordle")
    environment = panel.environment("Wordle-20-v0")
    kept = read_record(lmrl.NAME)["figures"][panel.name][environment.id]
    assert lmrl.stored_returns(panel, environment, 20_000) == kept


def test_counts_give_the_values_again():
    values = np.array([-1.5, 2.0, -1.5])
    assert counted(values) == {"-1.5": 2, "2": 1}
    assert from_counts(counted(values)).tolist() == [-1.5, -1.5, 2.0]
    assert counted(np.array([0.1 + 0.2, 0.3, 1.0])) == {"0.3": 2, "1": 1}


def test_a_record_is_read_as_it_was_made_and_refused_if_it_is_none(tmp_path):
    assert make_record("x", "command", lambda: {"a": [1]}, tmp_path) == {"a": [1]}
    assert read_record("x", tmp_path)["figures"] == {"a": [1]}
    write_json_checked(tmp_path / "y.json", {"form": "another"})
    with pytest.raises(ValueError, match="expected a record with form, command"):
        read_record("y", tmp_path)
