"""Frozen goals: the same for everyone, and an error where they are not."""

import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dialgym.tasks.multiwoz import goal_sets, goals
from dialgym.tasks.multiwoz.data import load_world
from dialgym.tasks.multiwoz.goal_sets import goal_set, hash_of


@pytest.fixture(autouse=True)
def drawn_again():
    goal_set.cache_clear()
    yield
    goal_set.cache_clear()


@pytest.mark.parametrize("name", ["train", "test"])
@pytest.mark.parametrize("source", ["built-in", "convlab2", "multiwoz_db"])
def test_the_goals_are_those_that_were_frozen(source, name, real_file):
    world = load_world(source if source == "built-in" else real_file(source))
    found = goal_set(world, name)
    assert (len(found), found.version, found.verified) == (1000, 1, True)
    assert found.hash == goal_sets.FROZEN[world.hash][name] == hash_of(found)
    assert found is goal_set(world, name)
    assert str(found) == f"{name} goals v1 {found.hash}"


def test_a_goal_is_found_by_its_number_or_at_random():
    found = goal_set(load_world("built-in"), "test")
    assert found[3] is found.goals[3]
    assert found[-2:] == found.goals[-2:]
    rng = np.random.default_rng(0)
    assert len({id(found.draw(rng)) for _ in range(300)}) > 200


def test_train_and_test_are_two_sets():
    world = load_world("built-in")
    train, test = ({repr(goal) for goal in goal_set(world, name)} for name in ("train", "test"))
    assert len(train & test) < 30  # some goals, such as to call the police, are simple
    assert min(len(train), len(test)) > 950


def test_a_pickle_is_small_and_gives_the_same_goals():
    found = goal_set(load_world("built-in"), "test")
    packed = pickle.dumps(found)
    assert len(packed) < 200
    assert pickle.loads(packed) is found


def test_another_way_of_drawing_fails_loudly(monkeypatch):
    monkeypatch.setattr(goals, "CHANGES", 0)
    message = r"goal set 'test' of MultiWOZ 'built-in': expected the goals of version 1 with the "
    with pytest.raises(ValueError, match=message):
        goal_set(load_world("built-in"), "test")


def test_another_city_in_its_place_fails_loudly():
    world = load_world("built-in")
    content = {**world.goal_model.content, "note": "changed"}
    other = replace(world, goal_model=replace(world.goal_model, content=content))
    assert other.hash != world.hash
    with pytest.raises(ValueError, match=f"with the hash of {other.hash}; got"):
        goal_set(other, "test")


def test_goals_of_other_data_are_not_verified(city):
    found = goal_set(city, "test")
    assert len(found) == 1000
    assert not found.verified
    with pytest.raises(ValueError, match=r"goals of MultiWOZ must be one of 'train', 'test'; got"):
        goal_set(city, "tests")


def test_the_hashes_are_published():
    readme = Path(goal_sets.__file__).with_name("README.md").read_text("utf-8")
    for world, sets in goal_sets.FROZEN.items():
        assert f"`{world}` | `{sets['train']}` | `{sets['test']}`" in readme
