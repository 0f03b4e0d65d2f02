"""Goals in ConvLab's form: read back as they were written, and one clear error for each fault."""

import gzip
import json
import pickle
import zipfile

import numpy as np
import pytest

from dialgym.tasks.multiwoz.data import load_world
from dialgym.tasks.multiwoz.goal_form import goal_as_json, parse_goal
from dialgym.tasks.multiwoz.types import DomainGoal

HOTEL = {"info": {"area": "north"}, "reqt": ["phone"]}


def test_a_goal():
    goal = parse_goal(
        {
            "hotel": HOTEL | {"book": {"day": "friday", "people": "2", "stay": "3"}},
            "taxi": {"info": {"leaveAt": "10:00"}, "reqt": {"car type": "?", "phone": "?"}},
            "domain_ordering": ["taxi", "hotel"],
        }
    )
    assert list(goal.domains) == ["taxi", "hotel"]
    assert goal.domains["taxi"] == DomainGoal(
        info={"leaveAt": "10:00"}, requests=("car type", "phone")
    )
    assert goal.domains["hotel"].book == {"day": "friday", "people": "2", "stay": "3"}


def test_a_goal_is_pickled():
    goal = parse_goal({"hotel": HOTEL})
    assert pickle.loads(pickle.dumps(goal)) == goal
    assert pickle.loads(pickle.dumps(DomainGoal())) == DomainGoal()


def test_without_an_ordering_domains_stand_in_order():
    goal = parse_goal({"train": {"reqt": ["price"]}, "hotel": HOTEL, "police": {}})
    assert list(goal.domains) == ["train", "hotel"]


def test_what_is_drawn_is_read_back_as_it_was():
    world, rng = load_world("built-in"), np.random.default_rng(0)
    for goal in [world.draw_goal(rng) for _ in range(300)]:
        written = json.loads(json.dumps(goal_as_json(goal)))
        assert parse_goal(written, world.database) == goal
        assert goal_as_json(parse_goal(written)) == written


def test_the_originals_own_goals_are_read(real_file):
    path = real_file("convlab2", "traces", "goals.jsonl.gz")
    database = load_world(real_file("convlab2")).database
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            content = json.loads(line)
            found = goal_as_json(parse_goal(content, database))
            reordered = {k: found[k] for k in content}
            assert reordered == content
            assert list(found)[:-1] == content["domain_ordering"]


def test_goals_of_the_corpus_are_read(real_file):
    path = real_file("multiwoz21_convlab", "test.json.zip")
    with zipfile.ZipFile(path) as archive:
        dialogues = json.loads(archive.read(archive.namelist()[0]))
    read = [parse_goal(dialogue["goal"]) for dialogue in dialogues.values()]
    assert len(read) == 1000
    assert np.mean([len(goal.domains) for goal in read]) > 1.5


def test_values_are_spelt_as_the_rows_have_them():
    database = load_world("built-in").database
    name = database.rows("hotel")[0]["name"]
    info = {"name": name.title(), "area": "Center", "parking": "dontcare", "internet": "Yes"}
    failing = {"area": "CENTRE", "stars": "99"}
    book = {"day": " Monday", "people": "2", "stay": "3"}
    given = {"hotel": {"info": info, "fail_info": failing, "book": book}}
    hotel = parse_goal(given, database).domains["hotel"]
    spelt = {"name": name, "area": "centre", "parking": "dontcare", "internet": "yes"}
    assert (hotel.info, hotel.book) == (spelt, book | {"day": "monday"})
    assert hotel.fail_info == {"area": "centre", "stars": "99"}


def test_constraints_that_no_row_meets():
    database = load_world("built-in").database
    content = {"hotel": {"info": {"name": "nowhere"}, "reqt": ["phone"]}}
    assert parse_goal(content).domains["hotel"].info == {"name": "nowhere"}
    with pytest.raises(ValueError, match=r"goal' of MultiWOZ > hotel > info: expected constraints"):
        parse_goal(content, database)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([], r"option 'goal' of MultiWOZ: expected an object such as \{'hotel'.*got \[\]"),
        ({"hotels": HOTEL}, r"unknown domain 'hotels' in option 'goal'.*Did you mean 'hotel'\?"),
        ({"hotel": []}, "a slot to ask for"),
        ({"hotel": ["x"]}, r"> hotel: expected an object with some of info, .*got \['x'\]"),
        ({"hotel": {"inform": {}}}, r"unknown part 'inform' in .* > hotel\. Did you mean 'info'"),
        ({"hotel": {"info": "x"}}, r"> hotel > info: expected an object of slots and values; got"),
        ({"hotel": {"info": {"food": "thai"}}}, r"unknown slot 'food' in .* > hotel > info"),
        ({"hotel": {"info": {"area": 3}}}, r"> hotel > info: expected a text under 'area'; got 3"),
        ({"hotel": {"info": {"area": " "}}}, r"a text under 'area'; got ' '"),
        ({"hotel": {"book": {"time": "10:00"}}}, r"unknown slot 'time' in .* > hotel > book"),
        ({"police": {"book": {"day": "x"}}}, r"unknown slot 'day' .* > police > book.*none"),
        ({"hotel": {"reqt": "phone"}}, r"> hotel > reqt: expected a list of slots, such as"),
        ({"hotel": {"reqt": ["fone"]}}, r"unknown slot 'fone' .*Did you mean 'phone'\?"),
        ({"hotel": {"info": {"area": "north"}}}, r"expected a slot to ask for \('reqt'\) or to"),
        ({}, "a slot to ask for"),
        ({"hotel": HOTEL, "domain_ordering": []}, r"> domain_ordering: expected the domains \['ho"),
        ({"hotel": HOTEL, "domain_ordering": "hotel"}, "in some order; got 'hotel'"),
        ({"hotel": HOTEL, "domain_ordering": [1]}, r"in some order; got \[1\]"),
    ],
)
def test_a_fault_is_one_clear_error(content, message):
    with pytest.raises(ValueError, match=message):
        parse_goal(content)
