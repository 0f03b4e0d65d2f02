"""Slot filling in English: templates one way, rules the other."""

import re

import numpy as np
import pytest

from dialgym.language import allows
from dialgym.language.acts import parse_act
from dialgym.tasks.slot_filling import SlotFilling
from dialgym.tasks.slot_filling.domain.domain import load_domain
from dialgym.tasks.slot_filling.domain.ontology import NAME
from dialgym.tasks.slot_filling.languages.english import SlotFillingEnglish
from dialgym.tasks.slot_filling.policies import Handcrafted
from dialgym.tasks.slot_filling.summary_acts import NEVER
from tests.support.by_day import by_day
from tests.support.commands import succeed
from tests.support.slot_acts import BUILT_IN, REAL, system_acts, user_acts

ENGLISH = SlotFillingEnglish(load_domain("Restaurants"), 6)
SEEDS = 3


@pytest.mark.parametrize("name", by_day(BUILT_IN, *sorted(BUILT_IN)[::3]))
def test_all_acts_of_a_domain_come_back_from_their_sentences(name):
    check_round_trip(load_domain(name))


@pytest.mark.parametrize("name", by_day(REAL, *REAL[:2]))
def test_all_acts_of_a_real_domain_come_back_from_their_sentences(name, data):
    check_round_trip(load_domain(data / "pydial" / name))


def check_round_trip(domain):
    """The same act, in whatever order: a sentence speaks of the type first."""
    language, rng = SlotFillingEnglish(domain, 6), np.random.default_rng(0)
    for party, acts in (("user", user_acts(domain)), ("system", system_acts(domain))):
        for act in acts:
            for text in {language.say(act, party, rng) for _ in range(SEEDS)}:
                read = language.understand(text, party)
                assert read is not None, text
                assert read.same(act), (text, act, read)
                assert set(text) <= set(language.charset)


def test_sentences_vary():
    act, rng = parse_act("inform(food=thai)"), np.random.default_rng(0)
    texts = {ENGLISH.say(act, "user", rng) for _ in range(50)}
    assert len(texts) == 4
    assert "I am looking for something with thai food." in texts


@pytest.mark.parametrize(
    ("text", "act"),
    [
        ("thai food please", "inform(food=thai)"),
        ("I'd like something cheap in the center", "inform(pricerange=cheap,area=centre)"),
        ("THAI, NORTH!", "inform(food=thai,area=north)"),
        ("the price range should be cheap", "inform(pricerange=cheap)"),
        ("cheap price range", "inform(pricerange=cheap)"),
        ("a moderately priced restaurant", "inform(pricerange=moderate,type=restaurant)"),
        ("any area is fine", "inform(area=dontcare)"),
        ("I don't care about the area", "inform(area=dontcare)"),
        ("I do not mind", 'inform(="dontcare")'),
        ("anything", 'inform(="dontcare")'),
        ("what's the phone number and address?", "request(phone,addr)"),
        ("what area is it in?", "request(area)"),
        ("the postcode of bellomere kitchen?", 'request(postcode,name="bellomere kitchen")'),
        ("does it serve thai food?", "confirm(food=thai)"),
        ("is it expensive?", "confirm(pricerange=expensive)"),
        ("yes please", "affirm()"),
        ("yes, cheap", "affirm(pricerange=cheap)"),
        ("no thanks", "negate()"),
        ("no, indian", "negate(food=indian)"),
        ("not thai but indian", "deny(food=thai,food=indian)"),
        ("I don't want thai", "deny(food=thai)"),
        ("Anything but thai food, please.", "deny(food=thai)"),
        ("It isn't thai that I asked for", "deny(food=thai)"),
        ("I don't like thai, give me indian", "deny(food=thai,food=indian)"),
        ("It is thai, isn't it?", "confirm(food=thai)"),
        ("is there something else?", "reqalts()"),
        ("anything else in the north", "reqalts(area=north)"),
        ("hi, thai food", "hello(food=thai)"),
        ("good morning", "hello()"),
        ("thank you, that's all", "bye()"),
        ("thanks", "thankyou()"),
        ("ok", "ack()"),
        ("could you say that again", "repeat()"),
        ("start over", "restart()"),
    ],
)
def test_what_a_person_may_say_as_the_user(text, act):
    assert ENGLISH.understand(text, "user") == parse_act(act)


@pytest.mark.parametrize(
    ("text", "act"),
    [
        ("Hello! How can I help?", "hello()"),
        ("What kind of food would you like?", "request(food)"),
        ("which area?", "request(area)"),
        ("did you say thai?", "confirm(food=thai)"),
        ("cheap?", "confirm(pricerange=cheap)"),
        ("thai or indian?", "select(food=thai,food=indian)"),
        ("How about bellomere kitchen?", 'inform(name="bellomere kitchen")'),
        (
            "Bellomere Kitchen is a nice indian place in the centre",
            'inform(name="bellomere kitchen",food=indian,area=centre)',
        ),
        ("There is no thai restaurant in the north", "inform(name=none,food=thai,area=north)"),
        ("anything else?", "reqmore()"),
        ("thank you, goodbye", "bye()"),
    ],
)
def test_what_a_person_may_say_as_the_system(text, act):
    assert ENGLISH.understand(text, "system") == parse_act(act)


@pytest.mark.parametrize("text", ["", "blah", "(unclear)", "Where do you live"])
def test_what_nobody_understands(text):
    assert ENGLISH.understand(text, "user") is None


def test_what_is_surely_heard_is_heard_as_it_was_said():
    task = SlotFilling(language="english")
    rng = np.random.default_rng(0)
    state = task.initial(rng)
    task.speak(state, "ermm, north I think", rng)
    assert state.heard_by_system[-1].text == "ermm, north I think"
    assert state.summary.best["area"][:2] == ("north", 1.0)


def test_in_noise_the_system_hears_sentences_with_their_chances():
    task = SlotFilling(env=3, language="english")
    rng = np.random.default_rng(0)
    state = task.initial(rng)
    task.speak(state, "I want thai food.", rng)
    *texts, unclear = state.heard_by_system[-1].text.split(" | ")
    assert texts
    assert unclear.startswith("(unclear) 0.")
    total = sum(float(text.rsplit(" ", 1)[1]) for text in (*texts, unclear))
    assert total == pytest.approx(1.0, abs=0.03)


@pytest.mark.parametrize("env", [1, 6])
def test_the_simulated_user_is_understood_by_what_it_says(env):
    """With a handcrafted system in English as well: both sides get the acts that were meant."""
    task = SlotFilling("CityRestaurants", env=env, language="english")
    rng, turns = np.random.default_rng(0), 0
    policy = task.speaker_named("system", "handcrafted")
    for _ in range(15):
        state, over = task.initial(rng), False
        while not over:
            if state.user_speaks:
                text, mind = state.planned
                assert task.language.understand(text, "user").same(mind.said), text
            else:
                draws = np.random.default_rng(turns)
                _, act = policy_choice(task, state, np.random.default_rng(turns))
                text = policy.reply(task, state, draws)
            speaks = state.user_speaks
            over = task.speak(state, text, rng).terminated
            assert speaks or state.system_act.same(act), text
            turns += 1
    assert turns > 100


def policy_choice(task, state, rng):
    return Handcrafted.of(task).choose(state.belief, state.summary, rng)


def test_the_system_may_name_summary_acts_in_english_too():
    task, rng = SlotFilling(language="english"), np.random.default_rng(0)
    state = task.initial(rng, {"constraints": {"food": "thai"}, "requests": ()})
    task.speak(state, "thai food, anything else does not matter", rng)
    task.speak(state, "request area", rng)
    assert state.system_act == parse_act("request(area)")
    assert state.heard_by_user[-1].text in ("What about the area?", "Which area would you like?")


@pytest.mark.parametrize("env", [1, 4])
def test_where_the_user_alone_speaks_english_the_system_names_summary_acts(env):
    """By the masks of acts, as in words; the user hears the sentence of the act."""
    task, rng = SlotFilling(env=env, language="english_user"), np.random.default_rng(0)
    expected = {phrase for phrase in task.summary_acts.phrases if phrase not in NEVER}
    for policy in ("handcrafted", "random"):
        system = task.speaker_named("system", policy)
        for _ in range(5):
            state, over = task.initial(rng), False
            while not over:
                if state.user_speaks:
                    over = task.speak(state, state.planned[0], rng).terminated
                    continue
                phrases = np.array(task.summary_acts.phrases)
                allowed = {*phrases[task.acts["system"].mask(state)].tolist()}
                grammar = task.constraint(state, "system")
                assert {p for p in phrases.tolist() if allows(grammar, p)} == allowed <= expected
                said = system.reply(task, state, rng)
                assert said in expected
                over = task.speak(state, said, rng).terminated
                assert state.heard_by_system[-1].text == said
                heard = ENGLISH.understand(state.heard_by_user[-1].text, "system")
                assert heard.same(state.system_act) or state.system_act.type == "null"


@pytest.mark.parametrize(
    ("options", "keys", "shown"),
    [
        (["--as", "user", "--seed", "3"],
         ["thai food", "the north", "anything", "what is the phone number", "thank you, goodbye"],
         ["note: I want ", ", and to know the name", "system: Hello, how may I help you?",
          "ved in 5 turns"]),
        (["--seed", "4"],
         ["request food", "what area?", "request pricerange", "inform", "inform_byname", "bye"],
         ["olved in", "(user, in private: I want"]),
        (["--seed", "4", "-s", "language=words"], ["request area", "bye"], ["user: p10 "]),
    ],
    ids=["as the user", "as the system", "in another language"],
)  # fmt: skip
def test_a_person_can_reach_the_goal(options, keys, shown):
    text = succeed("play", "SlotFilling-v0", *options, keys="".join(f"{key}\n" for key in keys))
    assert [part for part in shown if part not in text] == []


def test_hints_are_those_of_the_handcrafted_policy():
    keys = "request food\nbye\n"
    text = succeed("play", "SlotFilling-v0", "--seed", "4", "--hints", keys=keys)
    assert text.count("hint: ") == 2
    assert re.search(r"hint: (Which price range would you like|What about the price range)\?", text)


def test_a_name_goes_before_what_it_is_told_of():
    rng = np.random.default_rng(0)
    act = parse_act('inform(name="bellomere kitchen",phone="0555 385625",food=indian)')
    assert act.items[0].slot == NAME
    assert ENGLISH.say(act, "system", rng) == (
        "Bellomere kitchen has the phone number 0555 385625 and serves indian food."
    )


def test_a_name_that_says_nothing_by_itself_is_called_one(data):
    """``ask`` is a restaurant of Cambridge."""
    language = SlotFillingEnglish(load_domain(data / "pydial" / "CamRestaurants"), 1)
    text = language.say(parse_act('inform(name="ask",area=centre)'), "system", None)
    assert text == "The one called ask is in the centre."


def test_an_act_in_its_notation_is_read_as_it_is_and_heard_in_english():
    text = 'inform(name="lunta",phone="0555 1")'
    assert ENGLISH.understand(text, "system") is None
    task, rng = SlotFilling(language="english"), np.random.default_rng(0)
    state = task.initial(rng)
    task.speak(state, "Hi.", rng)
    task.speak(state, text, rng)
    assert state.system_act == parse_act(text)
    assert state.heard_by_user[-1].text == "Lunta has the phone number 0555 1."
