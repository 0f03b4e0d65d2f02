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
    assert said["inform_food"] == parse_act('inform(food="thai")')
    assert said["confirm_area"] == parse_act('confirm(area="dontcare")')
    assert said["negate_food"] == parse_act('negate(food="thai")')
    assert said["inform_type"] == parse_act('inform(type="restaurant")')
    every = parse_act('inform(type="restaurant",food="thai",area="dontcare")')
    assert said["inform_all"] == every
    assert said["request_phone"] == parse_act("request(phone)")
    assert said["request_all"] == parse_act("request(phone,addr)")
    assert said["inform_dontcare"] == parse_act('inform(="dontcare")')
    assert said["reqalts"] == parse_act("reqalts()")


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
    assert entry(env, seen, "constrained", "food") == 1
    assert entry(env, seen, "dontcare", "food") == 0
    assert entry(env, seen, "dontcare", "area") == 1
    assert entry(env, seen, "constrained", "pricerange") == 0
    assert entry(env, seen, "told", "food") == 0
    for slot in ("phone", "addr"):
        assert entry(env, seen, "wanted", slot) == entry(env, seen, "missing", slot) == 1
    assert entry(env, seen, "wanted", "postcode") == 0
    seen, *_ = env.step(env.act_names.index("inform_food"))
    assert entry(env, seen, "told", "food") == 1
    assert entry(env, seen, "turns") == pytest.approx(1 / 25)


def say(env, act):
    """The observation after another act of the system."""
    env.dialogue.state.system_act = parse_act(act)
    return env.acts.observe(env.dialogue.state)


def test_it_observes_what_the_system_says_of_its_goal():
    env, _ = begin()
    seen = say(env, "request(food)")
    assert entry(env, seen, "asked", "food") == 1
    assert entry(env, seen, "asked", "area") == 0
    seen = say(env, 'confirm(food="turkish")')
    assert entry(env, seen, "conflicts", "food") == 1
    assert entry(env, seen, "agrees", "food") == entry(env, seen, "asked", "food") == 0
    seen = say(env, 'select(food="turkish",food="thai")')
    assert entry(env, seen, "agrees", "food") == 1
    seen = say(env, 'inform(name="a place",phone="1")')
    assert entry(env, seen, "offered") == 1
    assert entry(env, seen, "answered", "phone") == 1
    assert entry(env, seen, "missing", "phone") == 0
    assert entry(env, seen, "missing", "addr") == 1
    seen = say(env, 'inform(name="none")')
    assert (entry(env, seen, "offered"), entry(env, seen, "nothing")) == (0, 1)


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
