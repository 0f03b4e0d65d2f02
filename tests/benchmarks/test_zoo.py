"""The command that makes the zoo: the best row with its model, all of the folder or nothing."""

import json
import zipfile
from dataclasses import replace
from functools import partial
from pathlib import Path
from shutil import copytree

import numpy as np
import pytest
import yaml

pytest.importorskip("stable_baselines3")
pytest.importorskip("pyarrow")
import agents
import dialgym
from agents.storage.archive import Archive
from benchmarks.zoo.__main__ import CHOSEN as CHOSEN_FILE
from benchmarks.zoo.candidates import candidates
from benchmarks.zoo.folder import that_stay, write_zoo
from dialgym.experiments import panel as panels
from dialgym.experiments.panel import Panel
from dialgym.experiments.row_files import read_row
from dialgym.experiments.zoo import read_zoo
from dialgym.io.checksums import write_json_checked
from tests.support.tiny_panel import install
from tests.support.tiny_zoo import CHOSEN, ID, PANEL, clone, write_rows

STEPS = (1, 100, 30)


@pytest.fixture(scope="module")
def rows(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("rows")
    before = panels._panels
    install(panel=PANEL)
    write_rows(folder, STEPS)
    panels._panels = before
    return folder


@pytest.fixture(autouse=True)
def tiny(monkeypatch):
    install(monkeypatch, PANEL)


def best_file(rows: Path) -> Path:
    """The row of the training that the zoo takes."""
    [best], _ = candidates(CHOSEN, [rows])
    return best.model.parent.with_suffix(".json")


def _copied(file: Path, rows: Path, target: Path, change=lambda values: None) -> Path:
    """A row of other content, without a checksum, and its model, in another folder."""
    values = json.loads(file.read_text("utf-8"))
    del values["sha256"]
    change(values)
    copy = target / file.relative_to(rows)
    model = copy.with_suffix("") / "model.zip"
    model.parent.mkdir(parents=True, exist_ok=True)
    model.write_bytes((file.with_suffix("") / "model.zip").read_bytes())
    copy.write_text(json.dumps(values), "utf-8")
    return copy


def fails(values) -> None:
    """Let every episode of a row fail at a return below that of a random policy."""
    for way, part in values["episodes"].items():
        part["returns"], part["solved"] = [-10.0] * 24, [0] * 24
        values["statistics"][way] |= {"return": -10.0, "success": 0.0}


def test_the_best_training_with_its_model_is_taken(rows):
    [best], _ = candidates(CHOSEN, [rows])
    means = [read_row(file).column("score").mean() for file in sorted(rows.rglob("*-seed*.json"))]
    assert best.seed == means.index(max(means)) > 0
    assert (best.name, best.among) == ("slotfilling-act-me", 3)


def test_a_row_without_its_model_and_one_that_learned_nothing_are_left_out(rows, tmp_path):
    for file in sorted(rows.rglob("*-seed*.json")):
        copy = tmp_path / file.relative_to(rows)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(file.read_bytes())
    expected = "tiny, SlotFilling-act-v0: no training with its model"
    assert candidates(CHOSEN, [tmp_path]) == ([], [expected])
    copy = _copied(best_file(rows), rows, tmp_path, fails)
    expected = "tiny, SlotFilling-act-v0: me has learned nothing"
    assert candidates(CHOSEN, [tmp_path]) == ([], [expected])
    _copied(best_file(rows), rows, tmp_path)
    [found], _ = candidates(CHOSEN, [tmp_path])
    assert found.model.parent == copy.with_suffix("")
    with pytest.raises(ValueError, match=r"got no row with its model. Name folders of rows"):
        write_zoo([], tmp_path / "zoo")
    with pytest.raises(ValueError, match="unknown panel 'no'"):
        candidates({"no": []}, [tmp_path])


def test_the_folder_has_weights_settings_and_cards(rows, tmp_path, monkeypatch):
    write_zoo(candidates(CHOSEN, [rows])[0], tmp_path / "zoo")
    monkeypatch.setenv("DIALGYM_ZOO", str(tmp_path / "zoo"))
    [agent] = read_zoo()
    [row] = [r for r in map(read_row, rows.rglob("*-seed*.json")) if r.seed == agent.seed]
    assert agent.mean_return.value == pytest.approx(row.column("return").mean())
    assert agent.score.low < agent.score.value < agent.score.high
    assert (agent.algorithm, agent.actions, agent.episodes) == ("bc", "greedy", 24)
    folder = tmp_path / "zoo" / agent.name
    own, original = (zipfile.ZipFile(f) for f in (folder / "model.zip", row.model_file))
    assert own.read("policy.safetensors") == original.read("policy.safetensors")
    assert "optimizer.safetensors" in original.namelist()
    assert not [name for name in own.namelist() if name.startswith("optimizer")]
    card = (folder / "README.md").read_text("utf-8")
    head = yaml.safe_load(card.split("---\n")[1])
    assert (head["license"], head["library_name"]) == ("apache-2.0", "dialgym")
    assert f'agents.load("zoo:{agent.name}")' in card
    for fact in ("| seed |", "| command |", "| versions |", "| task |", "the best of 3"):
        assert fact in card
    page = (tmp_path / "zoo" / "README.md").read_text("utf-8")
    assert f"[`zoo:{agent.name}`]({agent.name}/README.md)" in page
    assert (
        Archive(folder / "model.zip", "model").read("settings")["attributes"]["_last_obs"] is None
    )


def test_an_agent_stays_where_no_better_training_is_at_hand(rows, tmp_path):
    zoo, [best] = tmp_path / "zoo", candidates(CHOSEN, [rows])[0]
    assert that_stay([best], zoo, CHOSEN) == []
    write_zoo([best], zoo)
    [agent] = read_zoo(zoo)
    weights = (zoo / agent.name / "model.zip").read_bytes()
    worse, better = (
        replace(best, play=partial(replace, best.episodes, returns=np.full((1, 24), value)))
        for value in (-99.0, 99.0)
    )
    assert that_stay([], zoo, CHOSEN) == that_stay([worse], zoo, CHOSEN) == [agent]
    assert that_stay([better], zoo, CHOSEN) == that_stay([], zoo, {"tiny": []}) == []
    write_zoo([], zoo, [agent])
    assert read_zoo(zoo) == [agent]
    assert (zoo / agent.name / "model.zip").read_bytes() == weights
    assert f"({agent.name}/README.md)" in (zoo / "README.md").read_text("utf-8")


def test_an_agent_of_the_zoo_learns_on_with_new_optimizers(rows, tmp_path, monkeypatch):
    write_zoo(candidates(CHOSEN, [rows])[0], tmp_path / "zoo")
    monkeypatch.setenv("DIALGYM_ZOO", str(tmp_path / "zoo"))
    env = dialgym.sb3_vec_env(ID, 1)
    data = dialgym.collect(ID, "handcrafted", 10, seed=5)
    model = agents.load("zoo:slotfilling-act-me", device="cpu", env=env, dataset=data)
    assert model.policy.optimizer.state_dict()["state"] == {}
    model.learn(2)
    model.save(tmp_path / "on.zip")
    assert agents.load(tmp_path / "on.zip").policy.optimizer.state_dict()["state"] != {}


def test_a_zoo_that_would_be_too_large_leaves_the_old_one(rows, tmp_path):
    found, _ = candidates(CHOSEN, [rows])
    write_zoo(found, tmp_path / "zoo")
    before = (tmp_path / "zoo" / "zoo.json").read_bytes()
    with pytest.raises(ValueError, match=r"expected 1,000 bytes at most, got .*slotfilling-act-me"):
        write_zoo(found, tmp_path / "zoo", largest=1000)
    assert (tmp_path / "zoo" / "zoo.json").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["zoo"]
    with pytest.raises(ValueError, match="expected agents of different names"):
        write_zoo(found * 2, tmp_path / "zoo")


def test_another_model_than_that_of_the_row_is_refused(rows, tmp_path):
    def is_of_another(values):
        values["hashes"]["weights"] = "0" * 64

    _copied(best_file(rows), rows, tmp_path, is_of_another)
    with pytest.raises(ValueError, match="is not the model of"):
        write_zoo(candidates(CHOSEN, [tmp_path])[0], tmp_path / "zoo")


STAGED = Panel.of(
    "tiny",
    {
        "version": 1,
        "description": "A restaurant with tests on the way, for tests.",
        "environments": ["CamRestaurants-Env1-act-v0"],
        "settings": {"fidelity": "correct"},
        "evaluation": {"episodes": 24, "seed": 77},
        "imported_from": "pydial",
        "stages": [5, 10],
        "metric": "success",
    },
)
CAM = {"tiny": ["CamRestaurants-Env1-act-v0"]}


@pytest.fixture
def tested(kept, tmp_path, monkeypatch) -> Path:
    """The result of a training that was tested on the way, with its model beside it."""
    monkeypatch.setattr(panels, "_panels", lambda: {"tiny": STAGED})
    return copytree(kept, tmp_path / "runs" / "mine" / "correct" / "CR-Env1" / "seed0")


@pytest.fixture(scope="module")
def kept(tmp_path_factory) -> Path:
    """The folder that is copied."""
    [environment] = STAGED.environments
    folder = tmp_path_factory.mktemp("tested")
    model, settings = clone(100, environment.id, environment.settings), environment.settings
    model.save(folder / "model.zip")
    found = dialgym.evaluate(model, environment.id, 24, [77], settings, num_envs=24)
    test = {"drawn": 0, "success": round(found.success, 6), "reward": round(found.mean_return, 6)}
    values = {
        "method": "mine", "domain": "CR", "env": 1, "fidelity": "correct", "seed": 0,
        "source": "built-in", "episodes": 24, "versions": {}, "seconds": 1,
        "stages": [{"dialogues": n, **test, "cpu_seconds": 1.0} for n in (5, 10)],
    }  # fmt: skip
    write_json_checked(folder / "result.json", values)
    return folder


def test_a_training_with_tests_on_the_way_plays_its_test_again(tested, tmp_path):
    [one], left_out = candidates(CAM, [tmp_path / "runs"])
    assert (one.name, one.actions, left_out) == ("camrestaurants-env1-act-mine", "greedy", [])
    assert one.episodes.success == pytest.approx(one.mean / 100)
    assert one.command == (
        "dialgym benchmark tiny --algorithms mine --domains CR --envs 1 --seeds 0-0"
    )
    write_zoo([one], tmp_path / "zoo")
    values = json.loads((tested / "result.json").read_text("utf-8"))
    values.pop("sha256")
    for change, why in ({"source": "PyDial"}, "of other data (as named)"), (
        {"episodes": 12}, "with its model",
    ):  # fmt: skip
        write_json_checked(tested / "result.json", {**values, **change})
        expected = f"tiny, CamRestaurants-Env1-act-v0: no training {why}"
        assert candidates(CAM, [tmp_path / "runs"]) == ([], [expected])


def test_another_model_than_that_of_the_test_is_refused(tested, tmp_path):
    [environment] = STAGED.environments
    clone(0, environment.id, environment.settings).save(tested / "model.zip")
    with pytest.raises(ValueError, match=r"is not the model of its result\.json: expected"):
        candidates(CAM, [tmp_path / "runs"])


def test_the_chosen_environments_are_those_of_panels(monkeypatch):
    monkeypatch.undo()
    for name, ids in yaml.safe_load(CHOSEN_FILE.read_text("utf-8")).items():
        assert [panels.panel_named(name).environment(env_id).short for env_id in ids] == ids
