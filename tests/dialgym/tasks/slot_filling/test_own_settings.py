"""Users, goals, rewards and domains of your own, from mappings and YAML files."""

from functools import partial

import numpy as np
import pytest
import yaml

import dialgym
from dialgym.tasks.slot_filling import SlotFilling
from dialgym.tasks.slot_filling.domain.domain import load_domain
from dialgym.tasks.slot_filling.own_settings import (
    behaviour_of,
    goals_of,
    masks_of,
    rewards_of,
)
from dialgym.tasks.slot_filling.rewards import Rewards
from dialgym.testing.tasks import check_task

OWN = {
    "type": "bakery",
    "requestable": ["name", "kind", "area", "phone"],
    "system_requestable": ["kind", "area"],
    "informable": {
        "name": ["a", "b", "c", "d"],
        "kind": ["bread", "cake"],
        "area": ["north", "south"],
    },
    "rows": [
        {"name": "a", "kind": "bread", "area": "north", "phone": "1"},
        {"name": "b", "kind": "bread", "area": "north", "phone": "2"},
        {"name": "c", "kind": "cake", "area": "south", "phone": "3"},
        {"name": "d", "kind": "cake", "area": "south"},
    ],
}


def accepted(number):
    SlotFilling(inform_accepted=number)


def told(number):
    SlotFilling(inform_slots=number)


def test_masks_that_are_left_out_are_those_of_the_benchmark(tmp_path):
    file = tmp_path / "masks.yml"
    file.write_text("bye: true\n", "utf-8")
    assert SlotFilling(env=2, masks=str(file)).masks == (False, False, True)
    assert SlotFilling(env=1, masks={"inform": False}).masks == (False, True, True)
    task = SlotFilling(language="words", masks={"inform": False})
    state = task.initial(np.random.default_rng(0))
    allowed = task.constraint(state, "system").words
    assert "inform" in allowed
    assert "bye" not in allowed


def test_a_users_choices_are_drawn_as_told():
    rng = np.random.default_rng(0)
    behaviour = behaviour_of({"like": "unfriendly", "greet": 0.25, "relax": [0, 1], "patience": 2})
    probabilities, patience = behaviour.draw(rng)
    assert (probabilities["greet"], patience) == (0.25, 2)
    assert probabilities["combine_informs"] <= 0.4  # of the unfriendly one


def test_files_hold_what_mappings_do(tmp_path):
    file = tmp_path / "user.yml"
    file.write_text("greet: 1.0\npatience: [1, 2]\n", "utf-8")
    settings = {"user": str(file), "goals": {"constraints": 1, "matches": [2, 40]}}
    env = dialgym.make("dialgym/SlotFilling-act-v0", **settings)
    task = env.unwrapped.task
    assert task.simulated.behaviour.ranges["greet"] == (1.0, 1.0)
    assert task.simulated.behaviour.patience == (1, 2)
    assert len(task.goals.draw(np.random.default_rng(0)).constraints) == 1
    file.write_text("greet: 0.0\n", "utf-8")
    again = dialgym.make("dialgym/SlotFilling-act-v0", **settings).unwrapped.task
    assert again.simulated.behaviour.ranges["greet"] == (0.0, 0.0)


def test_goals_match_as_many_rows_as_told():
    task = SlotFilling(goals={"constraints": 2, "matches": 5, "requests": 0})
    for seed in range(20):
        goal = task.goals.draw(np.random.default_rng(seed))
        assert goal.requests == ("name",)
        assert task.domain.database.match_bits(goal.constraints).bit_count() == 5


@pytest.mark.parametrize("rewards", [{}, {"turn": -0.5, "failure": -5, "success": 1, "closing": 0}])
def test_returns_are_made_of_the_rewards(rewards):
    env = dialgym.make("dialgym/SlotFilling-act-v0", rewards=rewards)
    task = env.unwrapped.task
    given = Rewards(**rewards)
    low, high = task.facts.returns["system"]
    for seed in range(6):
        env.reset(seed=seed)
        policy, rng = task.acts["system"].policy_named("random"), np.random.default_rng(seed)
        total, over = 0.0, False
        while not over:
            action = policy.act(task, env.unwrapped.dialogue.state, rng)
            _, reward, over, _, info = env.step(action)
            total += reward
        end = given.success if info["is_success"] else given.failure
        closed = "closing" in info["reward_components"] and info["reward_components"]["closing"]
        turns = env.unwrapped.dialogue.turn
        expected = turns * given.turn + end + (given.closing if closed else 0)
        assert total == pytest.approx(expected)
        assert low <= total <= high


def test_bounds_are_those_of_all_dialogues():
    assert Rewards().bounds(25) == (-25.0, 19.0)
    assert Rewards(turn=1.0, closing=2.0, failure=-3.0).bounds(3) == (-2.0, 24.0)


def test_a_domain_of_your_own_is_a_yaml_file(tmp_path):
    file = tmp_path / "Bakeries.yml"
    file.write_text(yaml.safe_dump(OWN), "utf-8")
    domain = load_domain(file)
    assert (domain.ontology.domain, len(domain.database)) == ("Bakeries", 4)
    assert domain.database.rows[3]["phone"] == "not available"
    settings = {"domain": str(file), "goals": {"constraints": 2}}
    env = dialgym.make("dialgym/SlotFilling-act-v0", **settings)
    assert env.spec.kwargs["domain"] == str(file)
    result = dialgym.evaluate("handcrafted", "SlotFilling-act-v0", 20, (0,), settings)
    assert result.success > 0.8
    check_task(SlotFilling(**settings), 2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rows": None}, "got None under 'rows'. Mend the file."),
        ({"rows": [{"name": "a", "kind": 3}]}, "got 3 for 'kind' in row 1. Put it in quotes."),
        ({"type": None}, "expected a text under 'type'"),
    ],
)
def test_another_file_is_refused(tmp_path, change, message):
    file = tmp_path / "Bakeries.yaml"
    file.write_text(yaml.safe_dump({**OWN, **change}), "utf-8")
    with pytest.raises(ValueError, match=message):
        load_domain(str(file))


@pytest.mark.parametrize(
    ("made", "given", "message"),
    [
        (behaviour_of, "frindly", "user of SlotFilling must be one of 'standard', 'unfriendly'"),
        (behaviour_of, {"gret": 0.1}, "unknown choice 'gret'.*Did you mean 'greet'"),
        (behaviour_of, {"greet": 2}, "greet must be a probability"),
        (behaviour_of, {"greet": [0.5, 0.2]}, "greet must be a probability"),
        (behaviour_of, {"patience": 0}, "patience of user of SlotFilling must be a whole number"),
        (behaviour_of, {"like": "me"}, "like of user of SlotFilling must be one of"),
        (behaviour_of, "none.yml", "expected a YAML file at 'none.yml'; got No such file"),
        (goals_of, {"constrains": 3}, "unknown key 'constrains'.*Did you mean 'constraints'"),
        (goals_of, {"matches": [3, 2]}, "matches of goals of SlotFilling must be a whole number"),
        (goals_of, [3], r"goals of SlotFilling: expected a mapping such as \{constraints: 3"),
        (rewards_of, {"succes": 3}, "unknown key 'succes'.*Did you mean 'success'"),
        (rewards_of, {"turn": "much"}, "turn of rewards must be a finite number"),
        (partial(masks_of, default=True), {"infrom": True}, "unknown key 'infrom'.*'inform'"),
        (partial(masks_of, default=True), {"bye": 2}, "bye of masks of SlotFilling must be one of"),
        (partial(masks_of, default=True), 3, "masks of SlotFilling: expected a mapping such as"),
        (accepted, 0, "inform_accepted of SlotFilling must be a whole number from 1; got 0"),
        (lambda on: SlotFilling(confreq=on), 1, "confreq of SlotFilling must be True or False"),
        (lambda name: SlotFilling(language=name, confreq=True), "words", "Take another language"),
        (lambda on: SlotFilling(venue_count=on), True, "venue_count of SlotFilling: expected conf"),
        (told, 12, "inform_slots of SlotFilling must be a whole number from 1 to 11; got 12"),
    ],
)
def test_each_mistake_is_one_clear_message(made, given, message):
    with pytest.raises(ValueError, match=message):
        made(given)


def test_stored_dialogues_name_the_files_that_they_were_held_on(tmp_path):
    pytest.importorskip("pyarrow")
    file = tmp_path / "Bakeries.yml"
    file.write_text(yaml.safe_dump(OWN), "utf-8")
    settings = {"domain": str(file), "goals": {"constraints": 2}}
    found = dialgym.collect("SlotFilling-act-v0", "handcrafted", 3, 0, env_kwargs=settings)
    assert found.environment()[1] == settings


def test_dialogues_on_pydials_files_name_them(tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    from dialgym.tasks.slot_filling.domain.domain import PYDIAL
    from tests.support.slot_domains import VALUES, row_of, rules_of, write_domain

    rows = [row_of(i, food=food) for i, food in enumerate(("thai", "thai", "greek", "greek"))]
    names = {**VALUES, "name": [row["name"] for row in rows]}
    write_domain(tmp_path, rules_of(informable=names), rows, "CamRestaurants")
    monkeypatch.setenv(PYDIAL, str(tmp_path))
    found = dialgym.collect("CamRestaurants-Env1-act-v0", "handcrafted", 2, 0)
    assert found.environment()[1] == {"domain": str(tmp_path / "CamRestaurants")}
    with pytest.raises(ValueError, match="has a domain of that name: domain='CamRestaurants'"):
        load_domain("elsewhere/CamRestaurants")
