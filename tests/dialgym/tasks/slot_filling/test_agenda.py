"""The simulated user, reaction by reaction."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dialgym.language.acts import parse_act
from dialgym.tasks.slot_filling.domain.goals import GoalGenerator
from dialgym.tasks.slot_filling.user.grounding import fits
from dialgym.tasks.slot_filling.user.reactions import REACTIONS
from dialgym.tasks.slot_filling.user.state import STANDARD, UNFRIENDLY, SlotUserBehaviour
from dialgym.tasks.slot_filling.user.user import SlotFillingUser
from tests.support.slot_talk import DATABASE, NEVER, Talk, check_answers

OFFER = 'inform(name="venue 0",food="thai",area="north")'
NOTHING = 'inform(name="none",food="thai",area="north")'
TYPE, THAI, NORTH = 'inform(type="restaurant")', 'inform(food="thai")', 'inform(area="north")'
RIGHT, WRONG = 'confirm(food="thai")', 'confirm(food="greek")'
DONTCARE = {"constraints": [("food", "dontcare")], "omit_slot": 1}
FOOD_LAST = {"constraints": [("area", "north"), ("food", "thai")]}
GOAL = [("food", "thai"), ("area", "north")]
WITHOUT_PARKING = [*GOAL, ("parking", "dontcare")]

ANSWERS = {
    # agenda and answer
    "it opens with the type and then tells its constraints": (
        {}, None, [("hello()", TYPE), ("reqmore()", THAI), ("reqmore()", NORTH)], {}),
    "it may greet and say all at once": (
        {"greet": 1, "combine_informs": 1}, None,
        [("hello()", 'hello(type="restaurant",food="thai",area="north")')], {}),
    "it tells nothing twice": (
        {}, ["bye()", THAI, RIGHT, THAI], [("hello()", THAI)], {"agenda": ["bye()"]}),
    "it leaves when there is nothing more to say": ({}, [], [("hello()", "bye()")], {}),
    "a bye is answered by a bye": ({}, None, [("hello()", None), ("bye()", "bye()")], {}),
    "the same items in another order are a repetition": (
        {}, None, [('inform(name="venue 0",food="thai")', None),
                   ('inform(food="thai",name="venue 0")', None)], {"patience": 3}),
    "what it does not understand costs patience and it says it again": (
        {}, None, [("hello()", None), ("null()", TYPE)], {"patience": 3}),
    "to be asked for it again costs none": (
        {}, None, [("hello()", None), ("null()", TYPE), ("repeat()", TYPE)], {"patience": 3}),
    # request
    "a request is answered from the agenda first": (
        {}, None, [("hello()", None), ("request(area)", NORTH)], {"agenda": ["bye()", THAI]}),
    "then from the goal": ({}, ["bye()"], [("request(area)", NORTH)], {}),
    "what does not matter to the goal is dontcare": (
        {}, None, [("hello()", None), ("request(parking)", 'inform(parking="dontcare")')],
        {"goal": WITHOUT_PARKING}),
    "from now on": (
        {}, None, [("hello()", None), ("request(parking)", 'inform(parking="dontcare")'),
                   ('inform(name="none",parking="1")',
                    {'reqalts(parking="0")', 'reqalts(parking="1")'})], {}),
    "or another constraint is repeated": (
        {"repeat_constraint": 1}, None, [("request(parking)", {THAI, NORTH})], {"goal": GOAL}),
    "or it says dontcare without meaning it": (
        {"no_preference": 1}, None, [("request(parking)", 'inform(="dontcare")')],
        {"goal": GOAL}),
    "dontcare may go without its slot after a request": (
        DONTCARE, None, [("hello()", None), ("request(food)", 'inform(="dontcare")')], {}),
    "but not after a confirmation": (
        DONTCARE, None,
        [("hello()", None), ('confirm(area="north")', 'negate(area="dontcare")')], {}),
    "or a selection": (
        DONTCARE, None,
        [("hello()", None), ('select(food="thai",food="greek")', 'inform(="dontcare")')], {}),
    "it does not ask for a name": (
        {}, ["request(name,phone)"], [("hello()", "inform(phone)")], {}),
    "a request is answered by one while something is still to be told": (
        {"requests": ("phone", "addr"), "row": "venue 0"}, None,
        [("request(area)", 'request(name="venue 0",phone)')], {}),
    "what only the user asks for cannot be asked of it": (
        {}, None, [("request(phone)", "negate()")], {}),
    "the type can be asked for": ({}, ["bye()"], [("request(type)", TYPE)], {}),
    # confirm and select
    "what is right is affirmed": ({}, ["bye()"], [(RIGHT, "affirm()")], {}),
    "a question is not answered by another": (
        {"confirm_unsaid": 1}, ["bye()"], [(RIGHT, "affirm()")], {}),
    "an affirm may go with what comes next": (
        {"combine_affirm": 1}, ["bye()", NORTH], [(RIGHT, 'affirm(area="north")')], {}),
    "but not with a bye": (
        {"combine_affirm": 1}, ["bye()"], [(RIGHT, "affirm()")], {"agenda": ["bye()"]}),
    "what does not matter is affirmed as dontcare": (
        {}, [], [('confirm(parking="dontcare")', "affirm()")], {}),
    "and negated as a value": (
        {}, None, [('confirm(parking="1")', 'negate(parking="dontcare")')], {}),
    "unless any value is as good": (
        {"constraints": [("food", "dontcare")]}, [], [(RIGHT, "affirm()")], {}),
    "what is wrong is corrected": (FOOD_LAST, None, [(WRONG, THAI)], {}),
    "by negate": (
        {**FOOD_LAST, "correct_by_negate": 1}, None, [(WRONG, 'negate(food="thai")')], {}),
    "by deny": (
        {**FOOD_LAST, "correct_by_deny": 1}, None,
        [(WRONG, 'deny(food="greek",food="thai")')], {}),
    "by what the system has not spoken of": (
        {**FOOD_LAST, "overrule_correction": 1}, None,
        [(WRONG, {'confirm(area="north")', RIGHT})], {}),
    "dontcare is not right where something is wanted": (
        {}, None, [('confirm(food="dontcare")', THAI)], {}),
    "of two values it selects the right one": (
        {}, ["bye()"], [('select(food="greek",food="thai")', THAI),
                        ('select(parking="0",parking="1")', 'inform(parking="dontcare")')],
        {"goal": WITHOUT_PARKING}),
    # reqmore
    "reqmore waits for the agenda": (
        {"affirm_with_agenda": 1}, ["bye()", NORTH], [("reqmore()", 'affirm(area="north")')], {}),
    "reqmore is not answered by a yes before anything was said": (
        {"affirm_with_agenda": 1}, None, [("reqmore()", TYPE)], {}),
    "reqmore when all is done may be negated": (
        {"requests": (), "no_more": 1, "row": "venue 0"}, ["bye()"],
        [("reqmore()", "negate()")], {}),
    "or it leaves": (
        {"requests": (), "no_more": 0, "row": "venue 0"}, ["bye()"], [("reqmore()", "bye()")], {}),
    "reqmore brings open requests": (
        {"requests": ("phone", "addr"), "row": "venue 0"}, ["bye()"],
        [("reqmore()", "request(addr)")], {}),
    "reqmore before an offer may be affirmed": (
        {"constraints": [("food", "thai"), ("area", "dontcare")], "yes_more": 1}, ["bye()"],
        [("reqmore()", "affirm()")], {}),
    "or it tells again what it wants": (
        {"constraints": [("food", "thai"), ("area", "dontcare")], "yes_more": 0}, ["bye()"],
        [("reqmore()", 'inform(type="restaurant",food="thai")')], {}),
}  # fmt: skip
"""By rule: the user, its agenda, its answers to acts of the system, and its mind after them."""


@pytest.mark.parametrize("rule", ANSWERS)
def test_what_it_says(rule):
    check_answers(*ANSWERS[rule])


@pytest.mark.parametrize("patience", [2, 4])
def test_patience_goes_with_each_repeated_act_and_is_not_restored(patience):
    talk = Talk(patience=patience)
    talk.reply("hello()", "request(food)")
    for _ in range(patience - 1):
        assert talk.reply("request(food)") == 'inform(food="thai")'
    assert talk.me.patience == 1
    assert talk.reply("request(food)") == "bye()"


def test_a_misunderstanding_makes_answers_void():
    talk = Talk().agenda("bye()")
    talk.reply(OFFER, 'inform(name="venue 0",phone="1")')
    talk.agenda("bye()").reply('confirm(food="greek")')
    assert talk.me.requests == {"name": None, "phone": None}


@pytest.mark.parametrize(
    ("constraint", "said", "good"),
    [
        ('food="x"', 'food="x"', True),
        ('food="x"', 'food="y"', False),
        ('food="dontcare"', 'food="x"', True),
        ('food="x"', 'food="dontcare"', False),
        ('food="dontcare"', 'food="dontcare"', True),
        ('food="x"', 'food!="x"', False),
        ('food="x"', 'food!="y"', True),
        ('food="dontcare"', 'food!="x"', False),
        ('food!="x"', 'food="x"', False),
        ('food!="x"', 'food="y"', True),
        ('food!="x"', 'food="dontcare"', False),
        ('food!="x"', 'food!="x"', True),
        ('food!="x"', 'food!="y"', True),
        ('food="x"', 'area="y"', True),
    ],
)
def test_what_is_said_fits_a_constraint_if_it_is_as_special(constraint, said, good):
    one, other = (parse_act(f"inform({text})").items[0] for text in (constraint, said))
    assert fits(one, other) is good


def test_it_hangs_up_the_sooner_the_less_patience_is_left():
    left = dict.fromkeys((1, 2, 3), 0)
    for patience in left:
        for seed in range(400):
            talk = Talk(seed=seed)
            talk.me.patience = patience
            left[patience] += talk.reply('confirm(food="greek")') == "bye()"
    shares = {patience: count / 400 for patience, count in left.items()}
    expected = {patience: (1 - patience / 4) ** 2 for patience in left}
    assert shares == pytest.approx(expected, abs=0.07)
    assert all(Talk(seed=s).reply('confirm(food="greek")') != "bye()" for s in range(50))


def test_it_leaves_rather_than_answer_once_it_has_all_and_nothing_to_say():
    talk = Talk(requests=(), row="venue 0").agenda()
    answers = []
    for _ in range(300):
        talk.agenda()
        talk.me.patience = 4
        answers.append(talk.reply("hello()", "request(food)") == "bye()")
    assert np.mean(answers) == pytest.approx(0.85, abs=0.07)
    for seed in range(20):
        talk = Talk(requests=(), no_more=1, seed=seed, row="venue 0").agenda()
        assert talk.reply("reqmore()") == "negate()"


def test_every_chance_is_drawn_from_its_range():
    rng = np.random.default_rng(0)
    for ranges in (STANDARD, UNFRIENDLY):
        drawn = [SlotUserBehaviour(ranges).draw(rng) for _ in range(300)]
        for name, (low, high) in ranges.items():
            values = [chances[name] for chances, _ in drawn]
            assert low <= min(values) < low + 0.1 * (high - low) + 1e-9
            assert high - 0.1 * (high - low) - 1e-9 < max(values) <= high
        assert {patience for _, patience in drawn} == {4, 5}
    assert {k for k in STANDARD if STANDARD[k] != UNFRIENDLY[k]} == {
        "greet", "combine_informs", "combine_affirm", "relax", "tell_change",
    }  # fmt: skip
    assert NEVER.keys() == STANDARD.keys()


ACTS = st.sampled_from(
    ["hello()", "bye()", "null()", "repeat()", "reqmore()", "request(food)", "request(parking)",
     "request()", "select()", "confirm()", "inform()", 'confirm(food="greek",area="north")',
     'confirm(parking="1")', 'select(food="thai",food="cafe")', "request(phone)", "inform(phone)",
     OFFER, NOTHING, 'inform(name="venue 4",phone="x",area="south")', 'inform(food="greek")',
     'inform(name="none",name!="venue 0",name!="venue 1",food="thai",area="dontcare")']
)  # fmt: skip


@given(st.lists(ACTS, max_size=25), st.integers(0, 10_000))
@settings(max_examples=100)
def test_whatever_the_system_says_it_has_an_answer_and_a_sound_mind(said, seed):
    rng = np.random.default_rng(seed)
    user = SlotFillingUser(DATABASE.ontology, SlotUserBehaviour(STANDARD))
    me = user.begin(GoalGenerator(DATABASE).draw(rng), rng)
    for text in said:
        before = me.copy()
        user.hear(me, parse_act(text), rng)
        answer = user.answer(me, rng)
        assert not any(item.negated for item in answer.items)
        assert me.patience in (before.patience, before.patience - 1)
        positive = [c.slot for c in me.constraints if not c.negated]
        assert len(positive) == len(set(positive))
        assert "name" in me.requests


def test_a_copied_mind_is_independent():
    talk = Talk(alternative_goal=1)
    talk.reply("hello()")
    kept = talk.me.copy()
    shown = repr(kept)
    talk.reply("request(food)", OFFER, NOTHING, "request(parking)")
    assert repr(kept) == shown


def test_every_act_of_the_system_has_a_reaction():
    from dialgym.tasks.slot_filling.task import SYSTEM_ACTS

    assert {*SYSTEM_ACTS, "null"} == REACTIONS.keys()
