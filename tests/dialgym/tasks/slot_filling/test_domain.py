"""Domains: those that are built in, those of PyDial, and how a name finds one."""

import importlib.util
import json
import pickle
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml

import dialgym
from dialgym.tasks.slot_filling.domain.database import MISSING
from dialgym.tasks.slot_filling.domain.domain import (
    COUNTERPARTS,
    domain_files,
    find_faults,
    load_domain,
)
from dialgym.tasks.slot_filling.domain.goals import GoalGenerator
from dialgym.tasks.slot_filling.summary_acts import act_names
from dialgym.tasks.slot_filling.tracker import Layout
from tests.support.slot_domains import VALUES, row_of, rules_of, write_domain

ROOT = Path(__file__).parents[4]
SIZES = {  # rows, length of the belief vector, actions, requestable slots, values of asked slots
    "CamRestaurants": (110, 268, 16, 9, [3, 5, 91]),
    "SFRestaurants": (271, 636, 25, 11, [2, 3, 4, 9, 59, 155]),
    "Laptops11": (123, 257, 40, 21, [2, 3, 3, 3, 3, 3, 4, 5, 7, 7, 10]),
    "CamHotels": (33, 111, 22, 11, [2, 2, 3, 4, 5]),
    "SFHotels": (182, 438, 25, 10, [2, 2, 2, 4, 28, 155]),
    "TV": (94, 188, 25, 14, [3, 3, 3, 3, 5, 10]),
    "Laptops6": (123, 204, 25, 10, [2, 3, 3, 3, 3, 4]),
    "CamAttractions": (79, 156, 16, 9, [4, 5, 12]),
    "CamShops": (21, 84, 13, 6, [5, 7]),
    "CamTransport": (5, 64, 13, 6, [3, 5]),
}


def sizes(domain):
    ontology = domain.ontology
    values = sorted(len(ontology.values(slot)) for slot in ontology.system_requestable)
    size, acts = Layout(ontology).vector_size, len(act_names(ontology))
    counts = (size, acts, len(ontology.requestable))
    return (len(domain.database), *counts, values)


@pytest.fixture(autouse=True)
def no_folder(monkeypatch):
    monkeypatch.delenv("DIALGYM_PYDIAL", raising=False)


def all_names(data):
    """Every value of the slot `name` in PyDial's files."""
    paths = (data / "pydial").glob("*-rules.json")
    return {n for path in paths for n in load_domain(path).ontology.values("name")}


# PyDial's files


@pytest.mark.parametrize("name", SIZES)
def test_sizes_of_a_domain_of_pydial(name, real_file):
    assert sizes(load_domain(real_file("pydial", f"{name}-rules.json"))) == SIZES[name]


def test_rows_and_slots_of_pydial(data):
    cam, sf = (load_domain(data / "pydial" / name) for name in ("CamRestaurants", "SFRestaurants"))
    assert [row["name"] for row in cam.database.rows[:2]] == ["the nirala", "city stop restaurant"]
    assert len({row["name"] for row in sf.database.rows}) == 242  # some rows share a name
    assert (cam.ontology.binary, sf.ontology.binary) == ((), ("allowedforkids",))


# ConvLab's CamRest

CAMREST_ROWS = [
    {"name": f"venue {i}", "pricerange": "Cheap", "area": area, "phone": "0555", "id": str(i)}
    for i, area in enumerate(("north", "north", "south"))
]
UNIFIED = {
    "domains": {
        "restaurant": {
            "slots": {
                "price range": {"possible_values": ["cheap", "dear"]},
                "area": {"possible_values": ["south"]},
                "phone": {"possible_values": []},
            }
        }
    },
    "state": {"restaurant": {"price range": "", "area": ""}},
}
ORIGINAL = {"informable": {"pricerange": ["cheap", "dear"], "area": ["south"]}, "other": {}}


def camrest(folder, name="ontology.json", ontology=UNIFIED, rows=CAMREST_ROWS):
    """A folder of CamRest with the content given."""
    (folder / "db").mkdir(parents=True)
    (folder / name).write_text(json.dumps(ontology), encoding="utf-8")
    (folder / "db" / "CamRestDB.json").write_text(json.dumps(rows), encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("name", "ontology"), [("ontology.json", UNIFIED), ("CamRestOTGY.json", ORIGINAL)]
)
@pytest.mark.parametrize("zipped", [False, True])
def test_camrest_of_a_folder_or_zip(name, ontology, zipped, tmp_path):
    path = camrest(tmp_path / "data", name, ontology)
    if zipped:
        path = Path(shutil.make_archive(str(tmp_path / "data"), "zip", path))
    domain = load_domain(path)
    assert (domain.ontology.domain, domain.ontology.type) == ("CamRest", "restaurant")
    assert dict(domain.ontology.informable) == {
        "pricerange": ("cheap", "dear"),
        "area": ("south", "north"),
        "name": ("venue 0", "venue 1", "venue 2"),
    }
    assert domain.ontology.system_requestable == ("pricerange", "area")
    assert domain.ontology.requestable == ("name", "pricerange", "area", "phone")
    assert domain.database.matches({"pricerange": "cheap", "area": "north"}).tolist() == [0, 1]
    assert load_domain(domain.played).ontology == domain.ontology
    assert all(file.is_file() for file in domain_files(path))
    result = dialgym.evaluate("handcrafted", "SlotFilling-v0", 3, env_kwargs={"domain": str(path)})
    assert result.success == 1


def test_a_column_may_be_written_as_its_slot(tmp_path):
    rows = [{"price range" if s == "pricerange" else s: c for s, c in row.items()}
            for row in CAMREST_ROWS]  # fmt: skip
    domain = load_domain(camrest(tmp_path / "data", rows=rows))
    assert domain.ontology.system_requestable == ("pricerange", "area")
    assert domain.database.matches({"pricerange": "cheap", "area": "north"}).tolist() == [0, 1]


def test_the_real_camrest(real_file):
    domain = load_domain(real_file("camrest_unified", "data.zip"))
    assert sizes(domain) == (110, 263, 16, 7, [3, 5, 91])
    assert find_faults(domain) == []


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"rows": {}}, r"db/CamRestDB.json: expected a list of rows; got '{}'"),
        ({"rows": [{"name": "a"}]}, r"expected a column for the slot 'pricerange'; got 'name'"),
        ({"ontology": {"domains": {}}}, r"ontology.json: expected one domain under 'domains'"),
        ({"ontology": {**UNIFIED, "state": {"hotel": {}}}}, r"expected slots of 'restaurant'"),
        ({"ontology": []}, r"ontology.json: expected an ontology; got '\[\]'"),
        ({"name": "slots.json"}, r"expected ontology.json or CamRestOTGY.json of one domain"),
    ],
)
def test_a_folder_that_is_no_camrest(wrong, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        load_domain(camrest(tmp_path / "data", **wrong))
    with pytest.raises(ValueError, match=r"expected a folder or zip; got no file"):
        load_domain("nowhere.zip")


# Built-in domains


@pytest.mark.parametrize("name", SIZES)
def test_a_built_in_domain_has_the_sizes_of_its_counterpart(name):
    domain = load_domain(name)
    assert domain.source == "built-in"
    assert domain.ontology.domain == COUNTERPARTS[name]
    assert sizes(domain) == SIZES[name]


@pytest.mark.parametrize("name", COUNTERPARTS.values())
def test_a_built_in_domain_is_sound(name):
    ontology, database = load_domain(name).ontology, load_domain(name).database
    names = [row["name"] for row in database.rows]
    assert len(set(names)) == len(names)
    for place, (slot, values) in enumerate(ontology.informable.items()):
        assert values == tuple(sorted(values))
        unlisted = {row[slot] for row in database.rows} - set(values)
        assert unlisted <= {MISSING}
        assert slot != "name" or (database.codes[:, place] >= 0).all()


@pytest.mark.parametrize("name", COUNTERPARTS.values())
def test_a_built_in_domain_has_goals(name):
    domain = load_domain(name)
    goal = GoalGenerator(domain.database).draw(np.random.default_rng(0))
    assert len(domain.database.matches(goal.constraints)) in (2, 3)


@pytest.mark.parametrize("name", ["CamRestaurants", "SFRestaurants", "Laptops11"])
def test_a_built_in_domain_has_about_as_many_goals(name, data):
    real, ours = (
        len(GoalGenerator(load_domain(source).database).probability)
        for source in (data / "pydial" / name, name)
    )
    assert real / 2 < ours < real * 2


def test_no_name_of_a_built_in_domain_is_in_use(data):
    names = [n for b in COUNTERPARTS.values() for n in load_domain(b).ontology.values("name")]
    assert not all_names(data) & set(names)


@pytest.fixture(scope="module")
def build():
    folder = ROOT / "scripts"
    sys.path.insert(0, str(folder))
    spec = importlib.util.spec_from_file_location("build_domains", folder / "build_domains.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    sys.path.remove(str(folder))


@pytest.mark.parametrize("name", COUNTERPARTS.values())
def test_the_script_makes_the_files_of_the_package(name, build):
    spec = yaml.safe_load((ROOT / "scripts" / "build_domains.yaml").read_text("utf-8"))
    text = build.as_text(build.build(spec["domains"][name], spec["words"]))
    assert text == (build.OUT / f"{name}.json").read_text("utf-8")


# Names and paths


def test_a_name_of_pydial_is_looked_for_in_the_folder(tmp_path, monkeypatch):
    folder = tmp_path / "pydial"
    folder.mkdir()
    write_domain(folder, rules_of(), [row_of(0), row_of(1)], "CamRestaurants")
    monkeypatch.setenv("DIALGYM_PYDIAL", str(folder))
    assert load_domain("CamRestaurants").source == str(folder / "CamRestaurants")
    assert load_domain("CamHotels").source == "built-in"
    assert load_domain("Restaurants").source == "built-in"


@pytest.mark.parametrize("ending", ["", "-rules.json", "-dbase.db"])
def test_a_path_by_its_stem_or_either_file(ending, tmp_path):
    stem = write_domain(tmp_path, rules_of(), [row_of(0), row_of(1)])
    domain = load_domain(f"{stem}{ending}")
    assert domain.ontology.domain == "Toy"
    assert domain.source == str(stem)
    assert len(domain.database) == 2


def test_yaml_and_sqlite_hold_the_same_domain(tmp_path):
    rows = [row_of(0, food="THAI", area=""), row_of(1, area="North")]
    both = [tmp_path / "Toy.yml", write_domain(tmp_path, rules_of(), rows)]
    both[0].write_text(json.dumps({**rules_of(), "rows": rows}), "utf-8")
    yaml_, sqlite_ = ([dict(row) for row in load_domain(file).database.rows] for file in both)
    assert [row["food"] for row in yaml_] == ["thai", "thai"]
    assert [row["area"] for row in yaml_] == [MISSING, "north"]
    assert yaml_ == sqlite_


def test_a_domain_in_the_current_folder(tmp_path, monkeypatch):
    write_domain(tmp_path, rules_of(), [row_of(0)])
    monkeypatch.chdir(tmp_path)
    assert load_domain("Toy").source == "Toy"


def test_files_that_a_domain_is_read_from(tmp_path, monkeypatch):
    stem = write_domain(tmp_path, rules_of(), [row_of(0)], "CamRestaurants")
    both = (Path(f"{stem}-rules.json"), Path(f"{stem}-dbase.db"))
    assert domain_files(stem) == both
    monkeypatch.chdir(tmp_path)
    assert domain_files("CamRestaurants") == both
    assert domain_files("own.yml") == (tmp_path / "own.yml",)
    monkeypatch.chdir(tmp_path.parent)
    monkeypatch.setenv("DIALGYM_PYDIAL", str(tmp_path))
    assert domain_files("CamRestaurants") == both
    assert domain_files("CamHotels") == domain_files("Restaurants") == ()


@pytest.mark.parametrize(
    ("domain", "message"),
    [
        *[(domain, r"expected the name of a domain.*, or the path of its")
          for domain in ("", None, 3, ["Restaurants"])],
        ("Restaurant", r"unknown domain 'Restaurant'\. Did you mean 'Restaurants'"),
    ],
)  # fmt: skip
def test_what_is_neither_name_nor_path(domain, message):
    with pytest.raises(ValueError, match=message):
        load_domain(domain)


def test_an_unknown_name_in_the_folder(tmp_path, monkeypatch):
    write_domain(tmp_path, rules_of(), [row_of(0)], "Bars")
    monkeypatch.setenv("DIALGYM_PYDIAL", str(tmp_path))
    assert load_domain("Bars").ontology.domain == "Bars"


def test_a_folder_that_is_not_there_is_not_passed_over(tmp_path, monkeypatch):
    monkeypatch.setenv("DIALGYM_PYDIAL", str(tmp_path / "nowhere"))
    with pytest.raises(
        ValueError, match=r"\$DIALGYM_PYDIAL: expected the folder .* got '.*nowhere'"
    ):
        load_domain("CamRestaurants")


def test_cells_of_other_types_and_letters(tmp_path):
    rows = [{**row_of(0), "food": "Thai", "phone": 5, "addr": None, "area": ""}]
    row = load_domain(write_domain(tmp_path, rules_of(), rows)).database.rows[0]
    assert (row["food"], row["phone"], row["addr"], row["area"]) == ("thai", "5", MISSING, MISSING)


def test_values_that_differ_only_in_letters_stay_apart(tmp_path):
    informable = {**VALUES, "food": ("thai", "Thai"), "name": ("venue 0", "venue 1")}
    rows = [row_of(0), row_of(1, food="Thai")]
    path = write_domain(tmp_path, rules_of(informable=informable), rows)
    assert [row["food"] for row in load_domain(path).database.rows] == ["thai", "Thai"]


def test_a_pickle_is_the_same_domain():
    domain = load_domain("Shops")
    copy = pickle.loads(pickle.dumps(domain))
    assert copy.ontology == domain.ontology
    assert hash(copy.ontology) == hash(domain.ontology)
    assert copy.database.rows == domain.database.rows


def test_further_keys_of_the_rules_are_ignored(tmp_path):
    rules = {**json.loads(json.dumps(rules_of())), "method": ["none"], "binary": []}
    assert load_domain(write_domain(tmp_path, rules, [row_of(0)])).ontology.type == "restaurant"
