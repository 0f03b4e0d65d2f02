"""Goals are drawn as ConvLab-2 draws them: every marginal against 2,500 of its own goals."""

import gzip
import json
from dataclasses import replace

import numpy as np
import pytest

from dialgym.tasks.multiwoz.data import load_world
from dialgym.tasks.multiwoz.goal_form import goal_as_json
from dialgym.tasks.multiwoz.goal_model import weighted
from dialgym.tasks.multiwoz.goals import draw_goal
from tests.support.goal_marginals import counted, distances

SAME = 4.0
"""Standard deviations: 86 marginals of one distribution exceed it with a chance below 1 %."""


@pytest.fixture(scope="module")
def original(real_file):
    path = real_file("convlab2", "traces", "goals.jsonl.gz")
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return counted(map(json.loads, lines))


@pytest.fixture(scope="module")
def real(real_file):
    return load_world(real_file("convlab2"))


def drawn(world, count, model=None, seed=5):
    rng, model = np.random.default_rng(seed), model or world.goal_model
    return [goal_as_json(draw_goal(model, world.database, rng)) for _ in range(count)]


# the original's


def test_every_marginal_is_the_originals(original, real):
    found = distances(original, counted(drawn(real, 6000)))
    assert len(found) >= 80
    assert {name: z for name, z in found.items() if z > SAME} == {}
    assert abs(np.mean(list(found.values()))) < 0.5  # nor are they alike by much in common


def changed(model, domain, **changes):
    domains = {**model.domains, domain: replace(model.domains[domain], **changes)}
    return replace(model, domains=domains)


# the built-in city's


@pytest.fixture(scope="module")
def city():
    return load_world("built-in")


@pytest.fixture(scope="module")
def sample(city):
    rng = np.random.default_rng(0)
    return [city.draw_goal(rng) for _ in range(1500)]


def test_what_goals_want_can_be_had(city, sample):
    for goal in sample:
        assert any(part.requests or part.book for part in goal.domains.values())
        for domain, part in goal.domains.items():
            assert city.database.find(domain, part.info)
            assert not (part.fail_info and city.database.find(domain, part.fail_info))


def test_a_failed_constraint_is_one_that_changes(sample):
    parts = [part for goal in sample for part in goal.domains.values() if part.fail_info]
    assert len(parts) > 150
    for part in parts:
        assert sum(part.fail_info[slot] != part.info[slot] for slot in part.info) == 1


def test_goals_fail_and_book_as_often_as_in_the_original(sample):
    shares = {"restaurant": (0.235, 0.35), "hotel": (0.207, 0.43), "attraction": (0.122, 0.0)}
    for domain, (fails, books) in shares.items():
        parts = [goal.domains[domain] for goal in sample if domain in goal.domains]
        assert abs(np.mean([bool(part.fail_info) for part in parts]) - fails) < 0.06
        assert abs(np.mean([bool(part.book) for part in parts]) - books) < 0.06


def test_trains_and_taxis_have_one_time_and_their_ends(sample):
    for goal in sample:
        for domain in ("train", "taxi"):
            if domain in goal.domains:
                info = goal.domains[domain].info
                assert ("leaveAt" in info) + ("arriveBy" in info) == 1
        if list(goal.domains) == ["taxi"]:
            assert {"departure", "destination"} <= set(info)


def test_a_goal_about_the_domains_that_one_names(city):
    rng = np.random.default_rng(0)
    assert list(city.draw_goal(rng, ("police", "taxi")).domains) == ["police", "taxi"]
    with pytest.raises(ValueError, match=r"unknown domain 'trains'.*Did you mean 'train'\?"):
        city.draw_goal(rng, ["trains"])
    for wrong in ((), ("taxi", "taxi")):
        with pytest.raises(ValueError, match="one or more, each once"):
            city.draw_goal(rng, wrong)


def test_goals_do_not_share_what_they_are_made_of(city):
    rng = np.random.default_rng(0)
    parts = [part for _ in range(50) for part in city.draw_goal(rng).domains.values()]
    assert len({id(part.info) for part in parts}) == len(parts)


def test_a_database_that_meets_nothing(city):
    hospital = city.goal_model.domains["hospital"]
    nowhere = replace(hospital, values={"department": weighted([("nowhere", 1)])})
    model = replace(city.goal_model, orderings=weighted([(("hospital",), 1)]))
    model = replace(model, domains={"hospital": nowhere})
    with pytest.raises(ValueError, match="goals of hospital: expected constraints of the goal mod"):
        draw_goal(model, city.database, np.random.default_rng(0))


def test_a_train_that_the_hotels_day_leaves_none_of_is_dropped(city, monkeypatch):
    model = replace(city.goal_model, orderings=weighted([(("hotel", "train"), 1)]))
    model = changed(changed(model, "hotel", booking=1.0), "train", booking=1.0)
    rng = np.random.default_rng(0)
    assert all(len(draw_goal(model, city.database, rng).domains) == 2 for _ in range(20))
    find = city.database.find
    days = iter(range(10**6))

    def once(domain, info):  # met when it is drawn, and no more when its day is changed
        return find(domain, info) if domain != "train" or next(days) % 2 == 0 else 0

    monkeypatch.setattr(city.database, "find", once)
    rng = np.random.default_rng(0)
    assert all(list(draw_goal(model, city.database, rng).domains) == ["hotel"] for _ in range(5))
