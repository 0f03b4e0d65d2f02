"""The act view of slot filling's user."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.seeding import np_random

from dialgym.language.acts import parse_act
from dialgym.tasks import ActSpeaker, RandomActs
from dialgym.tasks.slot_filling import SlotFilling
from dialgym.views.act_env import ActEnv
from dialgym.views.dialogue import Dialogue

SETTINGS = [
    {"env": 1},
    {"env": 3, "fidelity": "pydial"},
    {"env": 5, "domain": "Laptops"},
    {"env": 6, "domain": "CityRestaurants"},
    {"env": 3, "language": "words"},
    {"env": 3, "language": "english"},
]
TASK = SlotFilling("Restaurants")
GOAL = {"constraints": {"food": "thai", "area": "dontcare"}, "requests": ["phone", "addr"]}


def begin(seed=0, **options):
    env = ActEnv(TASK, learner="user")
    observation, _ = env.reset(seed=seed, options={**GOAL, **options})
    return env, observation


def entry(env, observation, what, slot=None):
    """An entry of the observation by name."""
    acts = env.acts
    kinds = 9
    about = ("constrained", "dontcare", "told", "asked", "agrees", "conflicts")
    asks = ("wanted", "missing", "answered")
    if what in about:
        return observation[kinds + 6 * acts.asked.index(slot) + about.index(what)]
    if what in asks:
        start = kinds + 6 * len(acts.asked)
        return observation[start + 3 * acts.requests.index(slot) + asks.index(what)]
    return observation[-5 + ("offered", "nothing", "unwanted", "named", "turns").index(what)]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_the_agenda_user_can_be_played_by_choosing_its_acts(settings):
    """Its acts, chosen one by one, give the very dialogues that it has."""
    task = SlotFilling(**settings)
    agenda, env = task.acts["user"].policy_named("agenda"), ActEnv(task, learner="user")
    handcrafted = task.speaker_named("system", "handcrafted")
    dialogue, allowed = Dialogue(task, "user", handcrafted), []
    for seed in range(20):
        rng = np_random(seed)[0]
        exchange = dialogue.start(rng, None)
        while not exchange.over:
            exchange = dialogue.say(agenda.reply(task, dialogue.state, rng), rng)
        env.reset(seed=seed)
        over = False
        while not over:
            action = agenda.act(task, env.dialogue.state, rng)
            allowed.append(env.action_masks()[action])
            _, _, over, _, info = env.step(action)
        assert info["transcript"] == dialogue.transcript()
        assert info["is_success"] == exchange.success
    assert np.mean(allowed) > 0.99


def test_its_acts_say_what_the_goal_says():
    env, _ = begin()
    said = {name: env.acts.act(env.dialogue.state, i) for i, name in enumerate(env.act_names)}
    for name, text in {
        "inform_food": 'inform(food="thai")', "confirm_area": 'confirm(area="dontcare")',
        "negate_food": 'negate(food="thai")', "inform_type": 'inform(type="restaurant")',
        "inform_all": 'inform(type="restaurant",food="thai",area="dontcare")',
        "request_phone": "request(phone)", "request_all": "request(phone,addr)",
        "inform_dontcare": 'inform(="dontcare")', "reqalts": "reqalts()",
    }.items():  # fmt: skip
        assert said[name] == parse_act(text), name


def test_its_masks_leave_what_means_something():
    env, _ = begin()
    free = {name for name, allowed in zip(env.act_names, env.action_masks()) if allowed}
    assert {"inform_food", "inform_type", "inform_all", "hello", "request_phone"} <= free
    assert not free & {"inform_pricerange", "confirm_area", "request_postcode", "bye", "affirm"}
    env.step(env.act_names.index("hello"))
    free = {name for name, allowed in zip(env.act_names, env.action_masks()) if allowed}
    assert "bye" in free
    assert "hello" not in free
    every = ActEnv(SlotFilling("Restaurants", masks=False), learner="user")
    every.reset(seed=0)
    assert every.action_masks().all()


def test_it_observes_its_goal_and_what_is_open():
    env, seen = begin(seed=2)
    assert seen.dtype == np.float32
    expected = {
        ("constrained", "food"): 1, ("dontcare", "food"): 0, ("dontcare", "area"): 1,
        ("constrained", "pricerange"): 0, ("told", "food"): 0, ("wanted", "postcode"): 0,
        **{(what, slot): 1 for what in ("wanted", "missing") for slot in ("phone", "addr")},
    }  # fmt: skip
    assert {name: entry(env, seen, *name) for name in expected} == expected
    seen, *_ = env.step(env.act_names.index("inform_food"))
    assert entry(env, seen, "told", "food") == 1
    assert entry(env, seen, "turns") == pytest.approx(1 / 25)


@pytest.mark.parametrize(
    ("act", "entries"),
    [
        ("request(food)", {("asked", "food"): 1, ("asked", "area"): 0}),
        ('confirm(food="turkish")',
         {("conflicts", "food"): 1, ("agrees", "food"): 0, ("asked", "food"): 0}),
        ('select(food="turkish",food="thai")', {("agrees", "food"): 1}),
        ('inform(name="a place",phone="1")',
         {("offered",): 1, ("answered", "phone"): 1, ("missing", "phone"): 0,
          ("missing", "addr"): 1}),
        ('inform(name="none")', {("offered",): 0, ("nothing",): 1}),
    ],
)  # fmt: skip
def test_it_observes_what_the_system_says_of_its_goal(act, entries):
    env, _ = begin()
    env.dialogue.state.system_act = parse_act(act)
    seen = env.acts.observe(env.dialogue.state)
    assert {name: entry(env, seen, *name) for name in entries} == entries


def test_a_plan_of_its_own_succeeds_faster_than_the_agenda():
    """Tell all, ask for all, leave: what the observation and the acts suffice for."""
    env = gym.make("dialgym/SlotFilling-act-v0", learner="user").unwrapped
    number, won, turns = env.acts.number, [], []
    for seed in range(40):
        seen, _ = env.reset(seed=seed)
        over, name = False, "inform_all"
        while not over:
            seen, _, over, _, info = env.step(number[name])
            state = env.dialogue.state
            missing = any(entry(env, seen, "missing", slot) for slot in env.acts.requests)
            if entry(env, seen, "named"):
                name = "request_all" if missing else "bye"
            elif state.system_act.type == "request":
                name = "inform_dontcare"
            else:
                name = "inform_all"
        won.append(info["is_success"])
        turns.append(info["turn"])
    assert np.mean(won) > 0.9
    assert np.mean(turns) < 5.5


def test_the_random_user_keeps_to_the_masks():
    env, rng = ActEnv(TASK, learner="user"), np.random.default_rng(0)
    for seed in range(10):
        env.reset(seed=seed)
        over = False
        while not over:
            action = RandomActs().act(TASK, env.dialogue.state, rng)
            assert env.action_masks()[action]
            observation, _, over, _, _ = env.step(action)
            assert env.observation_space.contains(observation)


def test_an_act_policy_can_play_the_user_of_any_view():
    """By name, or as an object."""
    totals = []
    for simulator in ("random", RandomActs(), ActSpeaker(RandomActs())):
        env = gym.make("dialgym/SlotFilling-act-v0", simulator=simulator)
        env.reset(seed=0)
        total, over = 0.0, False
        while not over:
            _, reward, over, _, _ = env.step(0)
            total += reward
        totals.append((total, env.unwrapped.dialogue.transcript()))
    assert totals[0] == totals[1] == totals[2]
