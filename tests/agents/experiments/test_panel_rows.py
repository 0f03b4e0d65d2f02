"""Rows of a tiny panel: other models join them, all are checked, and played again."""

import json

import pytest

pytest.importorskip("stable_baselines3")
pytest.importorskip("pyarrow")
import agents
from agents.experiments.retraining import Retrained
from dialgym.cli.leaderboard import missing_cells
from dialgym.experiments.panel import Panel
from dialgym.experiments.row import ExperimentRow
from dialgym.experiments.row_files import read_row
from dialgym.experiments.statistics import Estimate
from dialgym.io.checksums import ENTRY
from tests.support.commands import fail, run, succeed
from tests.support.tiny_panel import BY_WORD, PPO, install

ROW = "Wordle-20-v0-seed0.json"
pytestmark = pytest.mark.usefixtures("tiny")


def test_models_of_ones_own_join_the_table(done, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    agents.train(
        "Wordle-20-v0",
        "ppo",
        total_timesteps=200,
        env_kwargs={"tokenizer": "word"},
        seed=3,
        log_dir="mine",
        hyperparameters=PPO,
        progress_bar=False,
    )
    add = ["leaderboard", "add", "tiny"]
    succeed(*add, "mine", "--name", "me", "--out", "own")
    row = read_row("own/tiny/me/" + ROW)
    assert (row.values["kind"], row.actions) == ("model", "drawn")
    text = succeed("leaderboard", "show", "tiny", "--results", "own", "--results", str(done))
    assert "me (drawn)" in text
    assert "played again alike" in succeed("leaderboard", "check", str(row.file), "--replay")
    succeed(*add, "mine", "--out", "own", "-p", "temperature=0.25")
    cool = read_row("own/tiny/mine-temperature0.25/" + ROW)
    assert cool.values["policy_kwargs"] == {"temperature": 0.25}
    assert cool.column("return", "drawn").tolist() != row.column("return", "drawn").tolist()
    assert "played again alike" in succeed("leaderboard", "check", str(cool.file), "--replay")
    text = fail(*add, "mine", "--out", "own", "--name", "me", "-p", "temperature=0.25")
    assert "is the row of another policy" in text
    succeed(*add, "optimal", "--seeds", "2", "--out", "own")
    assert "played again alike" in succeed("leaderboard", "check", "own/tiny/optimal", "--replay")
    for name in ("../x", "a|b", "mine\u200b", ""):
        assert "--name: expected up to 64 letters" in fail(*add, "optimal", "--name", name)
    assert "expected a checkpoint" in fail(*add, "nobody/model.zip", "--name", "x")
    same = fail(*add, "mine", "mine/model.zip", "--name", "twice", "--out", "own")
    assert "different trainings, got one as mine and as mine/model.zip: one training" in same
    row.file.rename(row.file.with_name("Wordle-20-v0-seed1.json"))
    same = fail(*add, "mine", "--name", "me", "--out", "own")
    assert "seed1.json' is the row of the same model, with another seed: one training" in same


def test_a_policy_of_ones_own_is_imported_only_where_that_was_said(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "my_words.py").write_text(
        "class First:\n    def reply(self, task, state, rng):\n        return task.words()[0]\n"
    )
    succeed("leaderboard", "add", "tiny", "my_words:First", "--out", "own")
    (file,) = (tmp_path / "own").rglob("*seed0.json")
    assert "trust" in fail("leaderboard", "check", str(file), "--replay")
    assert "alike" in succeed("leaderboard", "check", str(file), "--replay", "--trust")


OWN = """
class Fixed:
    def __init__(self, place):
        self.place = place

    def reply(self, task, state, rng):
        return task.words()[self.place]

class Broken:
    def reply(self, task, state, rng):
        raise KeyError("nothing")

second = Fixed(1)
"""


def test_the_policy_of_a_row_is_found_by_what_was_typed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "my_own.py").write_text(OWN)
    add = ["leaderboard", "add", "tiny", "--out", "own", "--name", "mine"]
    text = fail(*add, "my_own:Fixed")
    assert "policy 'my_own:Fixed': expected a class that needs no arguments, or an object" in text
    assert "'place'" in text
    succeed(*add, "my_own:second")
    assert read_row("own/tiny/mine/" + ROW).values["policy"] == "my_own:second"
    assert "alike" in succeed("leaderboard", "check", "own", "--replay", "--trust")


def test_a_row_that_cannot_be_played_does_not_keep_others_from_being_checked(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "my_broken.py").write_text(OWN)
    succeed("leaderboard", "add", "tiny", "random", "--name", "b", "--out", "own")
    file = tmp_path / "own" / "tiny" / "b" / ROW
    for policy in ("no_module:Class", "builtins:int", "my_broken:Fixed", "my_broken:Broken"):
        row = json.loads(file.read_text("utf-8")) | {"name": "a", "policy": policy}
        row.pop(ENTRY)
        (file.parents[1] / "a").mkdir(exist_ok=True)
        (file.parents[1] / "a" / ROW).write_text(json.dumps(row), "utf-8")
        result = run("leaderboard", "check", "own", "--replay", "--trust")
        assert result.exit_code == 2
        assert f"error: own/tiny/a/{ROW}: " in result.stderr
        assert result.stderr.count("\n") == 1
        assert f"own/tiny/b/{ROW}: played again alike" in result.stdout


def test_a_model_is_for_rows_of_models(done, tmp_path):
    rows, model = done / "tiny" / "random", str(done / "tiny" / "ppo" / ROW[:-5])
    replay = ["leaderboard", "check", "--replay", "--model", model]
    assert "--model: expected the row of a model, got scripted rows" in fail(*replay, str(rows))
    both = [str(rows / ROW), str(done / "tiny" / "ppo" / ROW)]
    assert succeed(*replay, *both).count("played again alike") == 2


def test_one_model_under_two_seeds_is_found(done, tmp_path):
    file = manipulated(done, tmp_path, lambda row: None)
    row = json.loads(file.read_text("utf-8")) | {"seed": 1}
    file.with_name("Wordle-20-v0-seed1.json").write_text(json.dumps(row), "utf-8")
    result = run("leaderboard", "check", str(tmp_path))
    assert result.exit_code == 2
    assert "seed1.json: hashes, model: expected another model than that of" in result.stderr
    assert result.stdout.count("statistics hold") == 1


@pytest.mark.parametrize("place", [f"tiny/mine/{ROW}", "tiny/ppo/Wordle-20-v0-seed1.json"])
def test_a_row_in_the_place_of_another_is_found(done, tmp_path, place):
    file = tmp_path / place
    file.parent.mkdir(parents=True)
    file.write_text((done / "tiny" / "ppo" / ROW).read_text("utf-8"), "utf-8")
    for command in (["check", str(tmp_path)], ["show", "tiny", "--results", str(tmp_path)]):
        result = run("leaderboard", *command)
        assert result.exit_code == 2
        message = f"its path: expected tiny/ppo/{ROW} at the end, as its content says, got"
        assert message in result.stderr
        assert place in result.stderr
    succeed("leaderboard", "check", str(file))  # a single one may lie anywhere


def test_cells_are_counted_as_they_are_run(monkeypatch, tmp_path):
    learners = {"bc": {"environments": ["dialgym/Wordle-200-v0"]}, "ppo": {}}
    values = {"algorithms": learners, "environments": ["Wordle-20-v0", "Wordle-200-v0"]}
    install(monkeypatch, Panel.of("tiny", {**BY_WORD, **values}))
    file = tmp_path / "x.json"

    def rows(name, *seeds):
        own = {"name": name, "id": "dialgym/Wordle-200-v0", "panel": "tiny"}
        return [ExperimentRow({**own, "seed": seed}, file) for seed in seeds]

    found = [*rows("bc", 0, 1), *rows("ppo", 0, 1), *rows("mine", 0)]
    lines = ["tiny/ppo: 2 of 4 cells of the panel", "tiny/mine: 1 of 4 cells of the panel"]
    assert list(missing_cells(found, [tmp_path])) == lines
    assert list(missing_cells(rows("bc", 0), [tmp_path])) == ["tiny/bc: 1 of 2 cells of the panel"]
    assert list(missing_cells(found, [])) == []


def test_where_nothing_can_be_written_nothing_is_played(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setattr("dialgym.experiments.protocol._Scoring.figures", None)
    out = ["--out", str(tmp_path / "file")]
    add = ["leaderboard", "add", "tiny", "random"]
    for command in (add, ["benchmark", "tiny", "--algorithms", "random"]):
        text = fail(*command, *out)
        assert "cannot be written: a file is where a folder should be" in text
    taken = tmp_path / "tiny" / "random" / ROW
    taken.mkdir(parents=True)
    text = fail("leaderboard", "add", "tiny", "random", "--out", str(tmp_path))
    assert "a folder is where the file should be; choose another name" in text


def manipulated(done, tmp_path, change, name="ppo"):
    """A copy of a row, changed as one does who knows about the checksum."""
    row = json.loads((done / "tiny" / name / ROW).read_text("utf-8"))
    row.pop(ENTRY)
    change(row)
    file = tmp_path / "tiny" / name / ROW
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(row), "utf-8")
    return file


def test_what_learned_is_trained_again(done, tmp_path):
    again = ["leaderboard", "check", "--retrain", "--out", str(tmp_path / "again")]
    text = succeed(*again, str(done / "tiny" / "bc-ppo" / ROW))
    assert "trained again: the same weights, return" in text
    other = manipulated(done, tmp_path, lambda row: row["hashes"].update(weights="0" * 64))
    text = succeed(*again, str(other))
    figure = read_row(other).column("return").mean()
    assert f"trained again: return {figure:.2f}, in the file {figure:.2f} [" in text


def test_a_figure_that_was_not_to_be_expected_is_an_error(done, tmp_path, monkeypatch):
    file = done / "tiny" / "ppo" / ROW
    found = Retrained(-4.0, Estimate(-2.0, -2.5, -1.5), "return", is_same_model=False)
    monkeypatch.setattr("agents.experiments.retraining.retrain_row", lambda row, out: found)
    text = fail("leaderboard", "check", "--retrain", str(file))
    assert "trained again: return -4.00, in the file -2.00 [-2.50, -1.50]" in text


def test_what_cannot_be_trained_again(done, tmp_path):
    check = ["leaderboard", "check", "--retrain", "--out", str(tmp_path / "again")]
    text = fail(*check, str(done / "tiny" / "random" / ROW))
    assert "expected a row of a learner, got one of kind 'scripted'" in text
    other = manipulated(done, tmp_path, lambda row: row["settings"].update(n_epochs=7))
    assert "the panel's are others than the row's (n_epochs)" in fail(*check, str(other))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda r: r["episodes"]["drawn"]["solved"].__setitem__(0, 7), "expected 0 or 1"),
        (lambda r: r["episodes"]["drawn"]["returns"].pop(), "expected 24 finite numbers, got 23"),
        (lambda r: r["statistics"]["drawn"].update(success=1.0), "expected those of the episodes"),
        (lambda r: r["hashes"].update(protocol="0"), "made by another protocol"),
        (lambda r: r.update(version=2), "version: expected 1 of 'tiny', got 2"),
        (lambda r: r.update(id="dialgym/Wordle-v0"), "unknown environment"),
        (lambda r: r.update(panel="huge"), "unknown panel 'huge'"),
        (lambda r: r.update(way="loud"), "unknown way 'loud'"),
        (lambda r: r.pop("cost"), "cost: expected an object, got None"),
        (lambda r: r.update(form="x"), "expected an object whose form is"),
    ],
)
def test_a_manipulated_file_is_found_out(done, tmp_path, change, message):
    file = manipulated(done, tmp_path, change)
    assert message in fail("leaderboard", "check", str(file))


def test_a_changed_byte_is_found_by_the_checksum(done, tmp_path):
    text = (done / "tiny" / "ppo" / ROW).read_text("utf-8").replace('"seed": 0', '"seed": 1', 1)
    (tmp_path / ROW).write_text(text, "utf-8")
    assert "is damaged" in fail("leaderboard", "check", str(tmp_path / ROW))


def test_better_episodes_with_their_statistics_are_found_by_playing_again(done, tmp_path):
    row = json.loads((done / "tiny" / "ppo" / ROW).read_text("utf-8"))
    returns = row["episodes"]["drawn"]["returns"]
    place = returns.index(min(returns))

    def improve(row):
        part = row["episodes"]["drawn"]
        part["returns"][place] += 1.0
        row["statistics"]["drawn"]["return"] = round(sum(part["returns"]) / 24, 6)

    file = manipulated(done, tmp_path, improve)
    assert "statistics hold" in succeed("leaderboard", "check", str(file))
    model = str(done / "tiny" / "ppo" / ROW[:-5])
    text = fail("leaderboard", "check", str(file), "--replay", "--model", model)
    assert f"drawn, returns: 1 of 24 episodes are others, the first {place}" in text
    assert "its model is not at" in fail("leaderboard", "check", str(file), "--replay")
    other = str(done / "tiny" / "bc" / ROW[:-5])
    text = fail("leaderboard", "check", str(file), "--replay", "--model", other)
    assert "another checksum" in text


@pytest.mark.slow
def test_all_rows_of_a_panel_play_again_alike(done):
    text = succeed("leaderboard", "check", str(done / "tiny"), "--replay")
    assert text.count("played again alike") == 10
    assert "cells of the panel" not in text
