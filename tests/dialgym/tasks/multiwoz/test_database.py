"""Queries of the database, against a scan of the rows one by one."""

import gzip
import json
import pickle
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialgym.tasks.bitsets import indices
from dialgym.tasks.multiwoz.data import load_world
from dialgym.tasks.multiwoz.database import CityDatabase, Taxis, clock
from dialgym.tasks.multiwoz.ontology import UNCONSTRAINED

ROWS = [
    {"name": "A", "area": "north", "food": "Thai ", "price": "?"},
    {"name": "b", "area": "centre", "food": "thai", "price": "cheap"},
    {"name": "c", "area": "?", "price": "dear"},
    {"name": "d", "area": "centre", "food": "greek", "price": "cheap", "phone": "1"},
]
TRAINS = [
    {"leaveAt": "05:00", "arriveBy": "05:51", "day": "monday", "departure": "x"},
    {"leaveAt": "11:30", "arriveBy": "12:21", "day": "monday", "departure": "y"},
    {"leaveAt": "23:40", "arriveBy": "24:31", "day": "sunday", "departure": "x"},
    {"leaveAt": "soon", "arriveBy": "?", "day": "sunday", "departure": "x"},
]
TAXIS = Taxis(("red", "blue"), ("cab", "van"))


def database(**tables) -> CityDatabase:
    return CityDatabase({"restaurant": ROWS, "train": TRAINS, **tables}, TAXIS)


def scan(rows, constraints) -> list[int]:
    """The places of the rows that no constraint rules out."""
    return [i for i, row in enumerate(rows) if not any(out(row, *c) for c in constraints.items())]


def out(row, slot, value) -> bool:
    if value in UNCONSTRAINED or not isinstance(row.get(slot), str):
        return False
    if slot in ("leaveAt", "arriveBy"):
        wanted, cell = minutes(value), minutes(row[slot])
        if wanted is None or cell is None:
            return False
        return wanted > cell if slot == "leaveAt" else wanted < cell
    cell = row[slot].strip()
    return cell != "?" and cell.lower() != value.strip().lower()


def minutes(text):
    try:
        hour, minute = text.split(":")[:2]
        return int(hour) * 100 + int(minute)
    except ValueError:
        return None


def found(domain, **constraints) -> list[int]:
    return indices(database().find(domain, constraints))


# by hand


@pytest.mark.parametrize(
    ("domain", "constraints", "places"),
    [
        ("restaurant", {}, [0, 1, 2, 3]),
        ("restaurant", {"area": "centre", "food": "greek"}, [2, 3]),
        ("restaurant", {"name": "b", "area": "south"}, []),
        ("restaurant", {"food": " THAI", "area": "NORTH"}, [0, 2]),
        ("restaurant", {"price": "nothing"}, [0]),  # cells that are open or missing meet all
        ("restaurant", {"phone": "2"}, [0, 1, 2]),
        *[("restaurant", {"area": value}, [0, 1, 2, 3]) for value in sorted(UNCONSTRAINED)],
        ("restaurant", {"stars": "4", "arriveBy": "10:00"}, [0, 1, 2, 3]),  # of no such slots
        ("restaurant", {"area": "center"}, [1, 2, 3]),
        ("restaurant", {"area": "Center"}, [1, 2, 3]),
        ("train", {"leaveAt": "11:30"}, [1, 2, 3]),  # times are bounds
        ("train", {"leaveAt": "11:31"}, [2, 3]),
        ("train", {"arriveBy": "12:21"}, [0, 1, 3]),
        ("train", {"arriveBy": "5:50"}, [3]),
        ("train", {"leaveAt": "06:00", "arriveBy": "23:00"}, [1, 3]),
        *[("train", {"leaveAt": text, "arriveBy": text}, [0, 1, 2, 3])
          for text in ("after noon", "12", "1a:00", "")],
    ],
)  # fmt: skip
def test_rows_that_meet_constraints(domain, constraints, places):
    assert found(domain, **constraints) == places


def test_the_original_takes_more_texts_for_times_than_people_do():
    assert clock("24:31") == 2431
    assert clock("9:5") == 905
    assert clock("09:30:59") == 930


def test_hospitals_are_found_by_department_alone():
    rows = [{"department": "Eye", "phone": "1"}, {"department": "burns", "phone": "2"}]
    hospitals = database(hospital=rows)
    assert indices(hospitals.find("hospital", {"department": "eye ", "phone": "9"})) == [0]
    assert indices(hospitals.find("hospital", {"department": "dontcare"})) == [0, 1]


def test_police_stations_meet_any_constraint():
    assert database(police=[{"name": "x"}]).count("police", {"name": "y"}) == 1


def test_there_is_always_one_taxi():
    assert database().count("taxi", {"leaveAt": "10:00"}) == 1
    assert database().rows("taxi") == ()
    assert database().first("taxi", {}) is None


def test_taxis_are_drawn():
    rng, city = np.random.default_rng(0), database()
    taxis = [city.taxi(rng) for _ in range(200)]
    assert {taxi["color"] for taxi in taxis} == {"red", "blue"}
    assert {taxi["car type"] for taxi in taxis} == {"cab", "van"}
    digits = [set(column) for column in zip(*(taxi["phone"] for taxi in taxis))]
    assert digits == [set("123456789")] * 11
    assert city.taxi(np.random.default_rng(0)) == taxis[0]


def test_a_row_knows_its_reference_and_is_read_only():
    row = database().first("restaurant", {"name": "c"})
    assert row == {**ROWS[2], "Ref": "00000002"}
    with pytest.raises(TypeError):
        row["name"] = "z"
    assert database().first("restaurant", {"name": "z"}) is None


def test_a_database_without_a_recipe_is_pickled_whole():
    copied = pickle.loads(pickle.dumps(database()))
    assert copied.rows("train") == database().rows("train")
    assert copied.find("restaurant", {"food": "thai"}) == 0b111
    assert copied.taxis == TAXIS


def test_rows_by_a_test_of_their_cells():
    assert indices(database().where("restaurant", "food", lambda food: "th" in food)) == [0, 1, 2]
    assert indices(database().where("restaurant", "stars", lambda _: False)) == [0, 1, 2, 3]


def test_rows_that_say_center_are_found_too():
    rows = [{"name": "a", "area": "Center"}, {"name": "b", "area": "centre"}]
    for area in ("center", "Centre", " centre"):
        assert database(hotel=rows).find("hotel", {"area": area}) == 0b11


def test_an_unknown_domain_and_an_empty_table():
    assert database().find("hotel", {"area": "north"}) == 0
    with pytest.raises(ValueError, match=r"unknown domain 'hotels'\. Did you mean 'hotel'\?"):
        database().find("hotels", {})


# against the scan

VALUES = st.sampled_from(
    ["north", "centre", "?", "Thai", "thai", "greek", "cheap", "dontcare", "z"]
)
TIMES = st.sampled_from(["05:00", "05:51", "11:30", "11:31", "24:31", "23:59", "x", "1:1", "?"])


@given(st.dictionaries(st.sampled_from(["area", "food", "price", "phone", "zork"]), VALUES))
def test_places_are_found_as_by_a_scan(constraints):
    assert found("restaurant", **constraints) == scan(ROWS, constraints)


@given(st.dictionaries(st.sampled_from(["leaveAt", "arriveBy"]), TIMES))
def test_trains_are_found_as_by_a_scan(constraints):
    assert found("train", **constraints) == scan(TRAINS, constraints)


@pytest.mark.parametrize("domain", ["attraction", "hotel", "restaurant", "train"])
def test_the_real_database_is_searched_as_by_a_scan(domain, real_file):
    folder = real_file("convlab2")
    rows = json.loads((folder / "db" / f"{domain}_db.json").read_text("utf-8"))
    search, rng = load_world(folder).database, Random(1)
    for _ in range(60 if domain == "train" else 300):
        row = rng.choice(rows)
        slots = rng.sample([*sorted(row), "zork"], rng.randrange(5))
        constraints = {slot: varied(row.get(slot), rng) for slot in slots}
        assert indices(search.find(domain, constraints)) == scan(rows, constraints), constraints


def varied(cell, rng) -> str:
    text = cell if isinstance(cell, str) else "none"
    return rng.choice([text, text, text, text.upper(), f" {text}", "dontcare", "?", "17:1", "a:b"])


# against the original's own dialogues


def test_what_the_original_found_is_found(real_file):
    """Each number of rows that its system spoke of, and each time that it found none."""
    path = real_file("convlab2", "traces", "rule_vs_agenda.jsonl.gz")
    database, checked = load_world(real_file("convlab2")).database, 0
    for turn in turns_of(path):
        for intent, name, slot, value in turn["system_acts"]:
            domain = name.lower()
            constraints = turn["belief_state"].get(domain, {}).get("semi", {})
            if (slot == "Choice" and intent == "Inform") or intent == "NoOffer":
                expected = 0 if intent == "NoOffer" else int(value)
                assert database.count(domain, constraints) == expected, (turn, domain)
                checked += 1
    assert checked > 1500


def turns_of(path):
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield from json.loads(line)["turns"]


def test_what_the_originals_users_want_is_found_and_what_fails_is_not(real_file):
    path = real_file("convlab2", "traces", "goals.jsonl.gz")
    database, failed = load_world(real_file("convlab2")).database, 0
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for goal in map(json.loads, lines):
            for domain in goal["domain_ordering"]:
                assert database.find(domain, goal[domain]["info"])
                if "fail_info" in goal[domain]:
                    assert not database.find(domain, goal[domain]["fail_info"])
                    failed += 1
    assert failed > 500
