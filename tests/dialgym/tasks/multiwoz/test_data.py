"""Worlds: built in, of folders and zips in several layouts, of the hub; and their faults."""

import copy
import importlib.util
import json
import pickle
import shutil
import zipfile
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import yaml

from dialgym.tasks.multiwoz.data import builtin_world, load_world
from dialgym.tasks.multiwoz.formats import FILES
from dialgym.tasks.multiwoz.goal_model import parse_goal_model
from dialgym.tasks.multiwoz.goal_pickle import PARTS, read_goal_pickle
from dialgym.tasks.multiwoz.ontology import DOMAINS
from tests.support.pretend_hub import COMMIT
from tests.support.small_city import place, tables, write_city

ROOT = Path(__file__).parents[4]
SIZES = {"attraction": 79, "hospital": 66, "hotel": 33, "police": 1, "restaurant": 110}
SIZES |= {"taxi": 0, "train": 2828}


@pytest.fixture(autouse=True)
def no_folder(monkeypatch):
    monkeypatch.delenv("DIALGYM_MULTIWOZ", raising=False)


def sizes(world):
    return {domain: len(world.database.rows(domain)) for domain in DOMAINS}


def test_a_folder_whose_database_is_a_link(tmp_path):
    write_city(tmp_path / "real")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "db").symlink_to(tmp_path / "real" / "db")
    assert sizes(load_world(tmp_path / "data")) == sizes(load_world(tmp_path / "real"))


# built in


def test_the_city_that_is_built_in_has_the_size_of_multiwoz():
    world = load_world()
    assert world is load_world("built-in")
    assert (world.source, world.stand_in) == ("built-in", True)
    assert sizes(world) == SIZES
    assert world.database.home == "camford"


def test_the_script_builds_it_again(monkeypatch):
    folder = ROOT / "scripts"
    monkeypatch.syspath_prepend(str(folder))
    spec = importlib.util.spec_from_file_location("build_multiwoz", folder / "build_multiwoz.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    content = script.build(yaml.safe_load((folder / "build_multiwoz.yaml").read_text("utf-8")))
    assert json.loads(json.dumps(content)) == script.read(script.OUT)
    assert script.OUT.stat().st_size < 100_000


def names(world):
    return {
        row["name"]
        for domain in ("attraction", "hotel", "police", "restaurant")
        for row in world.database.rows(domain)
    }


def test_its_names_are_its_own():
    found = names(load_world())
    assert len(found) == 79 + 33 + 1 + 110
    for domain in ("attraction", "hotel", "restaurant"):
        each = [row["name"] for row in load_world().database.rows(domain)]
        assert not [a for a in each for b in each if a != b and a in b]


def test_its_names_are_none_of_the_real_ones(real):
    assert not names(load_world()) & names(real)
    stations = [{r["departure"] for r in w.database.rows("train")} for w in (load_world(), real)]
    assert not stations[0] & stations[1]


def test_its_columns_have_the_shares_of_the_real_ones(real):
    for domain, slots in {
        "restaurant": ("area", "food", "pricerange"),
        "hotel": ("area", "stars", "parking", "internet", "type", "pricerange"),
        "attraction": ("area", "type", "entrance fee"),
        "train": ("day", "price", "duration"),
    }.items():
        for slot in slots:
            counts = [
                Counter(row[slot] for row in world.database.rows(domain))
                for world in (load_world(), real)
            ]
            assert counts[0] == counts[1], (domain, slot)


def test_its_rows_say_what_the_real_ones_say(real):
    extra = {"n", "signature"}  # of a few rows
    for domain in DOMAINS:
        columns = [
            {slot for row in world.database.rows(domain) for slot in row}
            for world in (load_world(), real)
        ]
        assert columns[0] == columns[1] - extra, domain
        assert set(load_world().values[domain]) <= {*real.values[domain], *columns[1]}


# real files


@pytest.fixture
def real(real_file):
    return load_world(real_file("convlab2"))


def test_the_files_of_convlab(real, data):
    assert (real.stand_in, sizes(real)) == (False, SIZES)
    assert real.source == str((data / "convlab2").resolve())
    assert real.database.home == "cambridge"
    assert len(real.values["attraction"]["name"]) == 79
    assert real.values["hotel"]["stars"] == ("4", "0", "3", "2")
    assert "london kings cross" in real.goal_model.domains["train"].values["departure"].items


def test_the_files_of_multiwozs_own_repository(real_file):
    world = load_world(real_file("multiwoz_db"))
    assert sizes(world) == SIZES
    assert "address" not in world.database.rows("hospital")[0]
    assert "mutliple sports" in world.values["attraction"]["type"]
    rows = world.database.rows("attraction")
    shares = world.goal_model.domains["attraction"].values["type"].shares
    assert shares["museum"] == pytest.approx(sum(r["type"] == "museum" for r in rows) / 79)
    for domain in ("departure", "destination"):
        assert len(world.goal_model.domains["taxi"].values[domain].items) == 79 + 33 + 110
    asked = {d: {s for s, _ in m.requests} for d, m in world.goal_model.domains.items()}
    assert asked["police"] == {"address", "phone"}  # what no row says is not asked for
    assert asked["hospital"] == {"phone"}
    rng = np.random.default_rng(0)
    for goal in [world.draw_goal(rng) for _ in range(200)]:
        assert all(world.database.find(d, part.info) for d, part in goal.domains.items())


# where worlds are found


def test_a_folder_is_read_once_and_again_when_it_changes(tmp_path):
    folder = write_city(tmp_path)
    world = load_world(folder)
    assert world is load_world(str(folder))
    counts = dict.fromkeys(DOMAINS, 2) | {"police": 1, "restaurant": 3, "taxi": 0, "train": 28}
    assert sizes(world) == counts
    changed = [*tables()["attraction"], place("new park", type="park", **{"entrance fee": "free"})]
    write_city(tmp_path, attraction_db=changed)
    assert len(load_world(folder).database.rows("attraction")) == 3
    assert load_world(folder).hash != world.hash


def test_cells_that_are_no_text_are_left_out(city):
    assert "price" not in city.database.rows("hotel")[0]
    assert "location" not in city.database.rows("restaurant")[2]
    assert city.database.rows("police")[0]["id"] == "0"


def test_values_are_those_of_the_rows_where_none_are_given(city):
    assert city.values["restaurant"]["food"] == ("thai", "Greek")
    assert city.values["taxi"] == {"types": ("cab",), "colors": ("red", "blue")}


def test_nobody_asks_for_a_domain_without_rows(tmp_path):
    city = load_world(write_city(tmp_path, train_db=[], police_db=[]))
    asked = {domain for ordering in city.goal_model.orderings.items for domain in ordering}
    assert asked == {*DOMAINS} - {"train", "police"}
    rng = np.random.default_rng(0)
    assert {d for _ in range(50) for d in city.draw_goal(rng).domains} <= asked
    model = load_world("built-in").goal_model.content
    with pytest.raises(ValueError, match=r"rows in \w+_db\.json, which the goal.*Add rows, or put"):
        load_world(write_city(tmp_path / "given", train_db=[], goal_model=model))


def test_values_and_goals_that_are_given(tmp_path):
    model = builtin_world().goal_model.content
    hospital = {**model, "domain_ordering": [{"of": ["police"], "weight": 1}]}
    values = {"hotel": {"area": ["moon"]}}
    world = load_world(write_city(tmp_path, goal_model=hospital, value_set=values))
    assert world.values == {"hotel": {"area": ("moon",)}}
    assert list(world.draw_goal(np.random.default_rng(0)).domains) == ["police"]


def as_pickle(content):
    """The goal model as ConvLab-2 keeps it: tables whose keys are tuples where JSON has lists."""

    def plain(part):
        if isinstance(part, dict):
            return Counter({key: plain(value) for key, value in part.items()})
        if isinstance(part, list):
            return {tuple(row["of"]): row["weight"] for row in part}
        return part

    return pickle.dumps(tuple(plain(content.get(part, {})) for part in PARTS))


def test_the_goal_model_of_convlab_as_it_comes(tmp_path):
    content = {part: {} for part in PARTS} | dict(builtin_world().goal_model.content)
    folder = write_city(tmp_path, goal_model=content, value_set={})
    expected = load_world(folder)
    (folder / "db" / "goal_model.json").unlink()
    (folder / "goal").mkdir()
    (folder / "goal" / "new_goal_model.pkl").write_bytes(as_pickle(content))
    (folder / "train.json.zip").write_text("a pointer to a large file")
    assert load_world(folder).hash == expected.hash


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"no pickle", r"goal model goal\.pkl: expected ConvLab-2's pickle of 6 tables \("),
        (pickle.dumps((1, 2)), r"tables \(it holds '\(1, 2\)'\)\. Fetch the file again"),
        (pickle.dumps(Path("x")), r"it holds pathlib\.\w+, and only counts are read"),
        (b"cos\nsystem\n(S'false'\ntR.", r"it holds os\.system, and only counts are read"),
    ],
)
def test_a_pickle_runs_nothing(content, message):
    with pytest.raises(ValueError, match=message):
        read_goal_pickle(content, "goal.pkl")


def test_a_flat_folder_and_a_zip(tmp_path):
    folder = write_city(tmp_path / "city")
    flat = shutil.copytree(folder / "db", tmp_path / "flat")
    with zipfile.ZipFile(tmp_path / "city.zip", "w") as archive:
        for file in flat.iterdir():
            archive.write(file, f"data/multiwoz/{file.name}")
    hashes = {load_world(where).hash for where in (folder, flat, tmp_path / "city.zip")}
    assert len(hashes) == 1


def test_the_folder_that_the_environment_names(tmp_path, monkeypatch):
    monkeypatch.setenv("DIALGYM_MULTIWOZ", str(write_city(tmp_path)))
    assert load_world() is load_world(tmp_path)
    assert load_world("built-in").stand_in


def test_a_data_set_of_the_hub(tmp_path, pretend_hub):
    pretend_hub.add("who/multiwoz-db", write_city(tmp_path))
    world = load_world("hf:who/multiwoz-db")
    assert world.source == f"hf:who/multiwoz-db@{COMMIT}"
    assert pretend_hub.asked == [("who/multiwoz-db", "dataset", None, FILES)]
    assert pickle.loads(pickle.dumps(world)) is world
    with pytest.raises(ValueError, match=r"'hf:who/none' could not be fetched .*404"):
        load_world("hf:who/none")


def test_a_pickle_says_only_where_a_world_is_from(tmp_path):
    for world in (load_world(), load_world(write_city(tmp_path))):
        for part in (world, world.database):
            packed = pickle.dumps(part)
            assert len(packed) < 300
            assert pickle.loads(packed) is part
            assert copy.deepcopy(part) is part
        model = pickle.loads(pickle.dumps(world.goal_model))
        assert model.content == world.goal_model.content


# faults


def hotels(**cells):
    return [tables()["hotel"][0], {**tables()["hotel"][1], **cells}]


def trains(**cells):
    return [{**tables()["train"][0], **cells}]


def without(domain, slot):
    return [{k: v for k, v in row.items() if k != slot} for row in tables()[domain]]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"hotel_db": None}, r"expected a file hotel_db\.json \(in it, or in db/\); got db/attr"),
        ({"hotel_db": "[{"}, r"db/hotel_db\.json: expected JSON \(Expecting"),
        ({"hotel_db": {}}, r"db/hotel_db\.json: expected a list of rows; got dict"),
        ({"hotel_db": ["x"]}, r"hotel_db\.json, row 1: expected an object of slots and val.*'x'"),
        ({"hotel_db": without("hotel", "stars")}, r"row 1: expected a text under 'stars'; got no"),
        ({"hotel_db": [{**row, "starz": "4"} for row in without("hotel", "stars")]},
         r"got no such slot\. Did you mean 'starz'\?"),
        ({"hotel_db": hotels(area=None)}, r"row 2: expected a text under 'area'; got None\. Mend"),
        ({"hotel_db": hotels(stars=4)}, r"row 2: expected a text under 'stars'; got 4"),
        ({"train_db": trains(leaveAt="noon")}, r"row 1: expected a time such as 09:30 under 'lea"),
        ({"train_db": trains(day="mon")}, r"a weekday under 'day'; got 'mon'\. Did you"),
        ({"taxi_db": {}}, r"taxi_db\.json: expected lists of texts 'taxi_colors' and 'taxi_types'"),
        ({"taxi_db": [1]}, "lists of texts 'taxi_colors'"),
        ({"taxi_db": {"taxi_colors": ["red"], "taxi_types": []}}, "lists of texts 'taxi_colors'"),
        ({"value_set": []}, r"value_set\.json: expected domain -> slot -> list of texts; got \[\]"),
        ({"value_set": {"hotel": {"area": [1]}}}, "domain -> slot -> list of texts"),
        ({"value_set": {"hotels": {}}}, r"value_set\.json: expected .*Did you mean 'hotel'"),
        ({"goal_model": "x"}, r"db/goal_model\.json: expected JSON"),
        ({"goal_model": {}}, r"goal model db/goal_model\.json: expected a part 'domain_ordering'"),
    ],
)  # fmt: skip
def test_a_fault_of_the_files_is_one_clear_error(changes, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        load_world(write_city(tmp_path, **changes))


def test_there_is_no_such_folder(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match="data of MultiWOZ: there is no file or folder"):
        load_world(tmp_path / "nowhere")
    monkeypatch.setenv("DIALGYM_MULTIWOZ", "nowhere")
    message = r"\$DIALGYM_MULTIWOZ: expected the folder of MultiWOZ's files; got 'nowhere', which"
    with pytest.raises(ValueError, match=message):
        load_world()


def goal_model(**changes):
    return {**builtin_world().goal_model.content, **changes}


def deep(part, domain, kind, **changes):
    """The part with changes of what it says of one domain."""
    found = json.loads(json.dumps(builtin_world().goal_model.content[part]))
    found[domain][kind] = found[domain][kind] | changes
    return {part: found}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([], r"goal model goal_model\.json: expected an object with names; got \[\]\. Mend"),
        (goal_model(domain_ordering={}), "domain_ordering: expected a list of objects with 'of'"),
        (goal_model(domain_ordering=[]), "domain_ordering: expected an entry with a weight; got n"),
        (goal_model(domain_ordering=[{"of": "taxi"}]), "objects with a list 'of' and a 'weight'"),
        (goal_model(domain_ordering=[{"of": ["hotels"], "weight": 1}]),
         r"domain_ordering: expected some of .*got 'hotels'\. Did you mean 'hotel'\?"),
        (goal_model(domain_ordering=[{"of": ["taxi", "taxi"], "weight": 1}]),
         "expected each name once in a list"),
        (goal_model(domain_ordering=[{"of": ["taxi"], "weight": -1}]),
         r"expected a weight of \('taxi',\), 0 or more; got -1"),
        (goal_model(booking_probability={"hotel": 2}), "expected a probability of 'hotel'; got 2"),
        (goal_model(slot_probability={}), "slot_probability: expected a part 'attraction'; got no"),
        (goal_model(**deep("slot_probability", "hotel", "info", star=0.5)),
         r"slot_probability > hotel > info: expected .*got 'star'\. Did you mean 'stars'"),
        (goal_model(**deep("slot_probability", "train", "info", arriveBy=0, leaveAt=0)),
         "train > info: expected a probability of 'arriveBy' or 'leaveAt'; got 0 for both"),
        (goal_model(**deep("slot_probability", "hotel", "reqt", fax=0.5)),
         "hotel > reqt: expected some of .*got 'fax'"),
        (goal_model(**deep("value_distribution", "hotel", "info", area={})),
         "value_distribution > hotel > info > area: expected an entry with a weight; got none"),
        (goal_model(**deep("value_distribution", "hotel", "info", area={"x": "much"})),
         "expected a weight of 'x', 0 or more; got 'much'"),
        (goal_model(**deep("value_distribution", "hotel", "book", stay={"long": 1})),
         "hotel > book > stay: expected numbers of nights; got 'long'"),
        (goal_model(**deep("value_distribution", "hotel", "book", day={"mon": 1})),
         r"hotel > book > day: expected some of monday.*got 'mon'\. Did you mean 'monday'\?"),
    ],
)  # fmt: skip
def test_a_fault_of_a_goal_model_is_one_clear_error(content, message):
    with pytest.raises(ValueError, match=message):
        parse_goal_model(content)


def test_the_hash_tells_an_order_that_changes_what_is_drawn(tmp_path):
    content = dict(builtin_world().goal_model.content)
    orderings = {**content, "domain_ordering": content["domain_ordering"][::-1]}
    rows = [dict(reversed(row.items())) for row in tables()["hotel"]]
    folders = [write_city(tmp_path / "a", goal_model=content)]
    folders += [write_city(tmp_path / "b", goal_model=content, hotel_db=rows)]
    folders += [write_city(tmp_path / "c", goal_model=orderings)]
    hashes = [load_world(folder).hash for folder in folders]
    assert hashes[0] == hashes[1] != hashes[2]


def test_its_trains_run_as_real_ones_do(real):
    for world in (load_world(), real):
        trains = world.database.rows("train")
        assert "05:00" <= min(r["leaveAt"] for r in trains) < "05:15"
        assert max(r["leaveAt"] for r in trains) < "24:00"
        home = Counter(
            (r["departure"], r["destination"]).count(world.database.home) for r in trains
        )
        assert home == {1: 2828}
        assert len({(r["departure"], r["destination"]) for r in trains}) == 24
