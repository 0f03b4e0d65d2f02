"""Stand-ins: without PyDial's files, results say that built-in domains were played."""

import json

import gymnasium as gym
import numpy as np
import pytest

import dialgym
from dialgym.experiments import benchmark, load_results
from dialgym.experiments.curves import read_curve
from dialgym.experiments.references import scores_name
from dialgym.experiments.result import results_as_markdown
from dialgym.registry import Row, entries, entry_of, make_task
from dialgym.views.env_spec import made_from
from tests.support.slot_domains import row_of, rules_of, write_domain

ENV = "dialgym/CamRestaurants-Env1-act-v0"
LABEL = f"{ENV} (built-in)"
OWN = "dialgym/SlotFilling-act-v0"


@pytest.fixture
def files(data, monkeypatch):
    """PyDial's own domains, while a test lasts."""
    monkeypatch.setenv("DIALGYM_PYDIAL", str(data / "pydial"))
    return data / "pydial"


def specs(env_id, **kwargs):
    single, batch = gym.make(env_id, **kwargs), gym.make_vec(env_id, 2, **kwargs)
    return single.spec, single.unwrapped.spec, batch.spec


@pytest.mark.parametrize("view", ["-act", "-utterance", ""])
def test_the_spec_names_the_built_in_domain(view):
    for spec in specs(f"dialgym/Laptops11-Env3{view}-v0"):
        assert spec.kwargs["domain"] == "Laptops"


def test_the_spec_names_the_files(files):
    for spec in specs(ENV):
        assert spec.kwargs["domain"] == str(files / "CamRestaurants")
    for spec in specs(OWN, domain=files / "CamHotels"):
        assert spec.kwargs["domain"] == str(files / "CamHotels")


def test_an_env_made_from_a_spec_plays_the_same_anywhere(files, monkeypatch):
    spec = gym.make(ENV, env=3).spec
    monkeypatch.delenv("DIALGYM_PYDIAL")
    again = gym.make(gym.envs.registration.EnvSpec.from_json(spec.to_json())).unwrapped.task
    assert (again.domain.source, again.env) == (str(files / "CamRestaurants"), 3)
    assert gym.make(ENV, env=3).unwrapped.task.domain.source == "built-in"


def test_the_registrys_own_spec_stays_as_it_is():
    gym.make(ENV)
    assert gym.spec(ENV).kwargs == {"env_id": ENV}


def test_tasks_are_shared_only_where_the_files_are_the_same(data, monkeypatch):
    tasks = [make_task(entry_of(ENV), {}) for _ in range(2)]
    assert tasks[0] is tasks[1]
    monkeypatch.setenv("DIALGYM_PYDIAL", str(data / "pydial"))
    real = make_task(entry_of(ENV), {})
    assert (real.domain.ontology.domain, real.stand_in) == ("CamRestaurants", None)
    monkeypatch.delenv("DIALGYM_PYDIAL")
    assert make_task(entry_of(ENV), {}) is tasks[0]
    assert tasks[0].stand_in == "built-in"


def played(domain):
    return make_task(entry_of(OWN), {"domain": domain}).domain


def test_a_domain_that_has_changed_is_read_again(tmp_path, monkeypatch):
    write_domain(tmp_path, rules_of(), [row_of(0), row_of(1)])
    monkeypatch.chdir(tmp_path)
    first = played("Toy")
    assert played("Toy") is first
    (tmp_path / "Toy-rules.json").write_text(json.dumps(rules_of(type="bar")))
    assert (first.ontology.type, played("Toy").ontology.type) == ("restaurant", "bar")
    (tmp_path / "Toy-dbase.db").unlink()
    write_domain(tmp_path, rules_of(type="bar"), [row_of(0, phone="9"), row_of(1)])
    assert played("Toy").database.rows[0]["phone"] == "9"


def test_a_name_means_the_files_of_the_folder_that_one_is_in(tmp_path, monkeypatch):
    for kind in ("bar", "club"):
        (tmp_path / kind).mkdir()
        write_domain(tmp_path / kind, rules_of(type=kind), [row_of(0), row_of(1)])
        monkeypatch.chdir(tmp_path / kind)
        assert played("Toy").ontology.type == kind


@pytest.mark.parametrize("given", ["Toy", "./Toy", "Toy-rules.json"])
def test_a_model_remembers_the_whole_path_of_its_domain(given, tmp_path, monkeypatch):
    write_domain(tmp_path, rules_of(), [row_of(0), row_of(1)])
    monkeypatch.chdir(tmp_path)
    for env in (gym.make(OWN, domain=given), gym.make_vec(OWN, 2, domain=given)):
        assert made_from(env.unwrapped)["settings"] == {"domain": str(tmp_path / "Toy")}


def test_a_model_remembers_a_domain_of_pydial_by_its_name(files):
    env = gym.make(OWN, domain="CamHotels").unwrapped
    assert made_from(env)["settings"] == {"domain": "CamHotels"}


@pytest.mark.parametrize("domain", ["Restaurants", "Laptops"])
def test_a_built_in_domain_by_its_own_name_stands_for_nothing(domain):
    assert make_task(entry_of(OWN), {"domain": domain}).stand_in is None
    assert dialgym.evaluate("random", OWN, 1, (0,), {"domain": domain}).stand_ins == {}


def test_tables_mark_what_was_played():
    result = dialgym.evaluate("random", [ENV, OWN], 3, (0,))
    assert result.stand_ins == {ENV: "built-in"}
    lines = result.to_markdown().splitlines()
    assert [line.split(" | ")[0] for line in lines[2:5]] == [f"| {LABEL}", f"| {OWN}", "| all"]
    assert "Built-in: the original is not here" in lines[-1]
    assert "do not compare" not in dialgym.evaluate("random", OWN, 3, (0,)).to_markdown()


def test_tables_do_not_mark_the_real_thing(files):
    result = dialgym.evaluate("random", ENV, 3, (0,))
    assert result.stand_ins == {}
    assert "built-in" not in result.to_markdown().lower()


def test_each_is_scored_by_references_of_its_own(data, monkeypatch):
    row = entry_of(ENV).row
    scores = {}
    for kind in (row.builtin_scores, row.scores):
        result = dialgym.evaluate("handcrafted", ENV, 20, (0,))
        low, high = kind["random"], kind["expert"]
        assert result.score == pytest.approx(100 * (result.mean_return - low) / (high - low))
        scores[scores_name(row)] = result.score
        monkeypatch.setenv("DIALGYM_PYDIAL", str(data / "pydial"))
    assert list(scores) == ["builtin_scores", "scores"]


def test_without_references_of_its_own_it_has_no_score():
    row = Row("x", "x:X", "x", scores={"random": 0, "expert": 1})
    assert row.references("built-in") == {}
    assert row.references(None) == row.scores


def test_every_row_that_something_stands_in_for_has_references_of_it():
    rows = {e.row.name: e.row for e in entries().values() if "pydial" in e.row.tags}
    assert len(rows) == 19
    for row in rows.values():
        assert scores_name(row) == "builtin_scores"
        assert row.builtin_scores["random"] < row.builtin_scores["expert"], row.name


def test_the_mark_outlives_files_pictures_and_merging(tmp_path, monkeypatch, data):
    pytest.importorskip("matplotlib")
    found = benchmark({"random": "random"}, [ENV, OWN], 2, (0,), games=1)
    found.save(tmp_path)
    assert LABEL in (tmp_path / "table.md").read_text()
    assert (tmp_path / "games.txt").read_text().startswith(f"{LABEL}, seed 0")
    (read,) = load_results(tmp_path / "results.json")
    assert read.label(ENV) == LABEL


def test_both_kinds_in_a_table_are_two_environments(data, monkeypatch):

    built_in = dialgym.evaluate("random", ENV, 2, (0,))
    monkeypatch.setenv("DIALGYM_PYDIAL", str(data / "pydial"))
    lines = results_as_markdown([built_in, dialgym.evaluate("random", ENV, 2, (0,))]).splitlines()
    assert [line.split(" | ")[0] for line in lines[2:-2]] == [f"| {LABEL}", f"| {ENV}"]


def test_stored_dialogues_name_the_domain_that_was_played(data, monkeypatch):
    pytest.importorskip("pyarrow")
    stored = dialgym.collect("CamRestaurants-Env3-v0", "handcrafted", 2, env_kwargs={"turns": 5})
    assert stored.environment()[1] == {"domain": "Restaurants", "turns": 5}
    monkeypatch.setenv("DIALGYM_PYDIAL", str(data / "pydial"))
    real = dialgym.collect("CamRestaurants-Env3-v0", "handcrafted", 2)
    assert real.environment()[1] == {"domain": str(data / "pydial" / "CamRestaurants")}
    own = dialgym.collect("SlotFilling-v0", "handcrafted", 2)
    assert own.environment()[1] == {}


def test_tables_of_recipes_mark_it_too():
    pytest.importorskip("scipy")
    from benchmarks.recipes.tables import Line, markdown

    row = entry_of(ENV).row
    returns = np.full((2, 3), row.builtin_scores["expert"])
    line = Line("x", ENV, returns, np.ones((2, 3), bool), source="built-in")
    assert line.score == pytest.approx(100)
    assert f"| {LABEL} | x |" in markdown([line])
    line = Line("x", ENV, returns, np.ones((2, 3), bool))
    assert line.score == pytest.approx(
        100 * (returns[0, 0] - row.scores["random"]) / (row.scores["expert"] - row.scores["random"])
    )
    assert f"| {ENV} | x |" in markdown([line])


def test_a_learning_curve_has_the_references_of_what_is_played(tmp_path, data, monkeypatch):
    (tmp_path / "config.yml").write_text(f"env_id: {ENV}\n")
    (tmp_path / "learning_curve.csv").write_text("timesteps,mean_return\n10,-3\n")
    row = entry_of(ENV).row
    assert read_curve(tmp_path).references["handcrafted"] == row.builtin_scores["expert"]
    monkeypatch.setenv("DIALGYM_PYDIAL", str(data / "pydial"))
    assert read_curve(tmp_path).references["handcrafted"] == row.scores["expert"]
