"""Slot filling as a task: its rules, options, facts and errors."""

import numpy as np
import pytest

from dialgym.language.acts import parse_act
from dialgym.tasks.base import SYSTEM, USER
from dialgym.tasks.slot_filling import SlotFilling
from dialgym.tasks.slot_filling.domain.domain import builtin_domain
from dialgym.tasks.slot_filling.rewards import succeeded
from dialgym.tasks.slot_filling.settings import SETTINGS
from dialgym.testing import check_batch, check_task, check_views
from dialgym.views.dialogue import Dialogue

TASK = SlotFilling("Restaurants")
DATABASE = builtin_domain("Restaurants").database


def talk(task=TASK, seed=0, options=None):
    """A state in which the system speaks, and the generator."""
    rng = np.random.default_rng(seed)
    state = task.initial(rng, options)
    task.speak(state, state.planned[0], rng)
    return state, rng


def say(task, state, rng, *texts):
    """The outcomes of what system and user say in turn."""
    return [task.speak(state, text, rng) for text in texts]


@pytest.mark.parametrize(
    "env", [e if e == 6 else pytest.param(e, marks=pytest.mark.slow) for e in SETTINGS]
)
def test_the_rules_keep_their_word(env):
    """Those of setting 1 are tried with the registered tasks too."""
    check_task(SlotFilling("Restaurants", env), episodes=2, seed=env)


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param({"env": 3}, marks=pytest.mark.slow),
        {"env": 6, "fidelity": "pydial"},
        {"turns": 1},
    ],
)
def test_all_views_agree(settings):
    """In short dialogues: the observations of tokens are as long as their limit allows."""
    task = SlotFilling("Shops", **{"turns": 6, **settings})
    check_views(task, episodes=1)
    check_batch(task, num_envs=2, steps=16)


@pytest.mark.parametrize(
    ("env", "rate", "noise", "masks", "user"),
    [
        (1, 0, "single", True, "standard"),
        (2, 0, "single", False, "standard"),
        (3, 0.15, "set1", True, "standard"),
        (4, 0.15, "set1", False, "standard"),
        (5, 0.15, "set1", True, "unfriendly"),
        (6, 0.30, "set3", True, "standard"),
    ],
)
def test_settings_are_those_of_the_benchmark(env, rate, noise, masks, user):
    task = SlotFilling("Restaurants", env)
    assert (task.error_rate, task.noise, {*task.masks}, task.user) == (rate, noise, {masks}, user)
    assert task.turns == 25


def test_a_setting_can_be_overridden():
    task = SlotFilling("Restaurants", 3, error_rate=0.5, masks=False, user="unfriendly")
    assert (task.channel.rate, {*task.masks}, task.user) == (0.5, {False}, "unfriendly")
    rate = np.float32(0.25)
    assert SlotFilling("Restaurants", 1, error_rate=rate, noise="set3").channel.rate == 0.25


# turns, rewards, end


def test_the_system_greets_and_the_user_opens():
    state = TASK.initial(np.random.default_rng(0))
    assert TASK.speaker(state) == USER
    assert [line.text for line in TASK.transcript(state, SYSTEM)] == ["hello()"]
    private, greeting = TASK.transcript(state, USER)
    assert private.private
    assert private.text.startswith("inform(")
    assert "request(name" in private.text
    assert greeting == (SYSTEM, "hello()", False)


def test_the_system_hears_a_list_and_the_user_itself():
    task = SlotFilling("Restaurants", 6)
    state, _ = talk(task)
    assert TASK.transcript(state, USER)[-1].text == state.heard_by_user[-1].text
    assert "null()" in task.transcript(state, SYSTEM)[-1].text
    assert "null()" not in task.transcript(state, USER)[-1].text


@pytest.mark.parametrize(
    ("texts", "parts", "over"),
    [
        (["reqmore()"], {"turn": -1}, False),
        (["reqmore()", "ack()"], {}, False),
        (["bye()"], {"turn": -1}, True),
        (["reqmore()", "bye()"], {"closing": -1}, True),  # the system answers it
        (["request(food)", "ack()"] * 2 + ["request(food)"], {"turn": -1}, True),
    ],
    ids=["a turn", "an answer", "a bye of the system", "a bye of the user", "the last turn"],
)
def test_what_a_turn_costs_and_ends(texts, parts, over):
    task = SlotFilling("Restaurants", turns=3)
    state, rng = talk(task)
    outcomes = say(task, state, rng, *texts)
    assert not any(outcome.terminated for outcome in outcomes[:-1])
    assert (outcomes[-1].terminated, outcomes[-1].truncated) == (over, False)
    assert outcomes[-1].success is (False if over else None)
    assert outcomes[-1].parts("system") == outcomes[-1].parts("user") == parts
    assert outcomes[-1].rewards == dict.fromkeys((SYSTEM, USER), sum(parts.values()))


def test_the_first_words_of_the_user_end_nothing():
    rng = np.random.default_rng(0)
    state = TASK.initial(rng)
    assert not TASK.speak(state, "bye()", rng).terminated
    assert TASK.speaker(state) == SYSTEM


@pytest.mark.parametrize("seed", range(5))
def test_success_is_rewarded_at_the_end(seed):
    dialogue = Dialogue(TASK, SYSTEM, TASK.speaker_named(USER, "agenda"))
    policy, rng = TASK.speaker_named(SYSTEM, "handcrafted"), np.random.default_rng(seed)
    exchange = dialogue.start(rng, None)
    total = 0.0
    while not exchange.over:
        exchange = dialogue.say(policy.reply(TASK, dialogue.state, rng), rng)
        total += exchange.reward
    assert exchange.success
    assert exchange.components["success"] == 20
    assert sum(exchange.components.values()) == exchange.reward
    replies = len([line for line in dialogue.state.heard_by_user if line.speaker == USER])
    assert total == 20 - replies


def test_the_users_mind_counts_after_the_last_turn():
    """The offer of the last turn is heard, though not answered."""
    task = SlotFilling("Restaurants", turns=1)
    wanted = {"pricerange": "dontcare"}
    state, rng = talk(task, options={"constraints": wanted, "requests": []})
    (outcome,) = say(task, state, rng, f'inform(name="{DATABASE.rows[0]["name"]}")')
    assert outcome.terminated
    assert outcome.success == succeeded(state.user_state, DATABASE)
    assert state.user_state.requests["name"] == DATABASE.rows[0]["name"]


def mind(constraints, requests):
    state, _ = talk()
    state.user_state.constraints = [parse_act(f"a({text})").items[0] for text in constraints]
    state.user_state.requests = requests
    return state.user_state


ROW = DATABASE.rows[3]
AREA, OTHER = ROW["area"], next(r["area"] for r in DATABASE.rows if r["area"] != ROW["area"])


@pytest.mark.parametrize(
    ("constraints", "requests", "success"),
    [
        ([], {"name": ROW["name"]}, True),
        ([], {"name": None}, False),
        ([], {"name": "nowhere"}, False),
        ([], {"name": ROW["name"], "phone": None}, False),
        ([], {"name": ROW["name"], "phone": ROW["phone"], "unheard of": "x"}, True),
        ([], {"name": ROW["name"], "phone": "anything"}, False),
        ([], {"name": ROW["name"], "phone": "dontcare"}, False),
        ([], {"name": ROW["name"], "phone": DATABASE.rows[0]["phone"]}, False),
        ([f'area="{AREA}"'], {"name": ROW["name"]}, True),
        (['area="dontcare"'], {"name": ROW["name"]}, True),
        ([f'area="{OTHER}"'], {"name": ROW["name"]}, False),
        ([f'name!="{ROW["name"]}"'], {"name": ROW["name"]}, False),
        (['name!="another"'], {"name": ROW["name"]}, True),
        ([f'name="{ROW["name"]}"'], {"name": ROW["name"]}, True),
        (['name="dontcare"'], {"name": ROW["name"]}, True),
        (['name="another"'], {"name": ROW["name"]}, False),
    ],
)
def test_success(constraints, requests, success):
    assert succeeded(mind(constraints, requests), DATABASE) == success


@pytest.mark.parametrize(("fidelity", "success"), [("correct", False), ("pydial", True)])
def test_a_wrong_answer_is_none_but_in_the_original(fidelity, success):
    task = SlotFilling("Restaurants", fidelity=fidelity)
    state, rng = talk(task, options={"constraints": {"area": AREA}, "requests": ["phone"]})
    offer = f'inform(name="{ROW["name"]}")'
    say(task, state, rng, offer, "request(phone)")
    wrong = f'inform(name="{ROW["name"]}",phone="0")'
    outcome = say(task, state, rng, wrong, "bye()")[-1]
    assert (outcome.terminated, outcome.success) == (True, success)


# what is said


@pytest.mark.parametrize("text", ["", "thai food please", "inform(", "fly(to=mars)", "\ud83d"])
def test_what_is_no_act_is_null(text):
    state, rng = talk()
    before = state.user_state.patience
    say(TASK, state, rng, text)
    assert state.system_act.type == "null"
    assert state.planned[1].patience == before - 1
    heard = TASK.initial(rng)
    TASK.speak(heard, text, rng)
    assert heard.heard_by_system[-1].text == "null() 1.00"
    assert heard.heard_by_user[-1].text == text


def test_a_user_of_its_own_mind_is_judged_by_the_goal_drawn():
    """Another user than the simulated one may say anything; answers count all the same."""
    state, rng = talk(options={"constraints": {"area": AREA}, "requests": ["phone"]})
    name = ROW["name"]
    answer = f'inform(name="{name}",phone="{ROW["phone"]}")'
    say(TASK, state, rng, f'inform(name="{name}")', "ack()", answer, "request(addr)")
    outcomes = say(TASK, state, rng, "reqmore()", "bye()")
    assert outcomes[-1].success
    assert [(c.slot, c.value) for c in state.user_state.constraints] == [("area", AREA)]


def test_an_alternative_is_asked_for_until_one_is_given():
    state, rng = talk()
    name, other = DATABASE.rows[0]["name"], DATABASE.rows[1]["name"]
    say(TASK, state, rng, f'inform(name="{name}")', "reqalts()")
    assert state.belief.alternatives
    say(TASK, state, rng, f'inform(name="{name}")')
    assert state.belief.alternatives
    say(TASK, state, rng, "ack()")
    say(TASK, state, rng, f'inform(name="{other}")')
    assert not state.belief.alternatives
    say(TASK, state, rng, "thankyou()")
    assert not state.belief.alternatives  # byalternatives still, but the user has thanked


@pytest.mark.parametrize("chosen", ["inform", "inform_alternatives"])
def test_an_alternative_is_looked_for_where_that_is_chosen(chosen):
    """As in the original: a new row that is offered by another summary act leaves it open."""
    state, rng = talk()
    name = DATABASE.rows[0]["name"]
    say(TASK, state, rng, f'inform(name="{name}")', "reqalts()")
    text = TASK.acts["system"].say(state, TASK.summary_acts.number[chosen], rng)
    say(TASK, state, rng, text)
    assert state.belief.alternatives == (chosen == "inform")
    assert state.chosen is None


# options and errors


def test_options_fix_the_goal():
    options = {"constraints": {"area": AREA, "food": "dontcare"}, "requests": ["phone"],
               "patience": 7}  # fmt: skip
    state = TASK.initial(np.random.default_rng(0), options)
    assert {c.slot: c.value for c in state.user_state.constraints} == options["constraints"]
    assert list(state.user_state.requests) == ["name", "phone"]
    assert state.user_state.patience == 7
    partly = TASK.initial(np.random.default_rng(0), {"requests": []})
    assert list(partly.user_state.requests) == ["name"]
    assert len(partly.user_state.constraints) == 3
