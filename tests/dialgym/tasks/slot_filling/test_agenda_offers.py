"""The simulated user and what it is offered: which row it takes, asks about, or does not want."""

import pytest

from dialgym.language.acts import parse_act
from tests.support.slot_talk import Talk, check_answers

OFFER = 'inform(name="venue 0",food="thai",area="north")'
NOTHING = 'inform(name="none",food="thai",area="north")'
OTHER = OFFER.replace("venue 0", "venue 3")
PARKING = 'inform(parking="1")'
TWO = {"requests": ("phone", "addr")}
NORTH = {"constraints": [("area", "north")]}
GOAL = [("food", "thai"), ("area", "north")]

ANSWERS = {
    "an offer is accepted and asked about": (
        TWO, ["bye()"], [(OFFER, "request(phone)")],
        {"goal": [*GOAL, ("name", "venue 0")],
         "requests": {"name": "venue 0", "phone": None, "addr": None}}),
    "until all is told": (
        TWO, ["bye()"], [(OFFER, "request(phone)"),
                         ('inform(name="venue 0",phone="1")', "request(addr)"),
                         ('inform(name="venue 0",addr="x")', "bye()")], {}),
    "it may ask for all at once": (
        {**TWO, "request_more": 1}, ["bye()"], [(OFFER, "request(phone,addr)")], {}),
    "and by name": (
        {"name_in_request": 1}, ["bye()"], [(OFFER, 'request(phone,name="venue 0")')], {}),
    "it may thank first": ({"thank": 1}, ["bye()"], [(OFFER, "thankyou()")], {}),
    "or acknowledge": ({"acknowledge": 1}, ["bye()"], [(OFFER, "ack()")], {}),
    "it may go on with its agenda first": (
        {"agenda_first": 1}, ["bye()", PARKING], [(OFFER, PARKING)], {}),
    "where there is something on it": (
        {"agenda_first": 1}, ["bye()"], [(OFFER, "request(phone)")], {}),
    "what is left on the agenda may become a question": (
        {"confirm_informs": 1, "agenda_first": 1}, ["bye()", PARKING],
        [(OFFER, 'confirm(parking="1")')], {}),
    "but not what does not matter": (
        {"confirm_informs": 1, "agenda_first": 1}, ["bye()", 'inform(parking="dontcare")'],
        [(OFFER, 'inform(parking="dontcare")')], {}),
    "an offer that misses the goal is corrected and its answers are void": (
        {}, ["bye()"], [('inform(name="venue 2",food="greek",phone="1")', 'inform(food="thai")')],
        {"requests": {"name": None, "phone": None}}),
    "what is told of another row than the one agreed on is corrected": (
        {}, ["bye()"], [(OFFER, None), ('inform(name="venue 1",phone="1")',
                                        'inform(name="venue 0")')], {}),
    "it may confirm what the offer left out": (
        {"confirm_unsaid": 1}, ["bye()"],
        [('inform(name="venue 0",food="thai")', 'confirm(area="north")')],
        {"requests": {"name": "venue 0", "phone": None, "food": "thai"}}),
    "at the first offer it may want another": (
        {"alternative": 1}, None, [(OFFER, "reqalts()")], {"goal": [*GOAL, ("name", "!venue 0")]}),
    "or change its goal without telling, and ask about that later": (
        {**NORTH, "alternative_goal": 1}, None, [(OFFER, "reqalts()")],
        {"goal": [("area", "south")], "requests": {"name": None, "phone": None, "area": None}}),
    "or relax it without telling": (
        {**NORTH, "alternative_goal": 1, "relax": 1}, None, [(OFFER, "reqalts()")],
        {"goal": [("area", "dontcare"), ("name", "!venue 0")]}),
    "a value is not wanted twice": (
        NORTH, None, [('inform(name="none",area="north")', 'reqalts(area="south")'),
                      ('inform(name="none",area="south")', 'reqalts(area="dontcare")')], {}),
    "of a slot that it did not think of it wants no value": (
        NORTH, None, [('inform(name="none",parking="1")', 'reqalts(parking="dontcare")')], {}),
    "nothing for what it did not want is corrected": (
        {}, None, [('inform(name="none",food="greek")', 'inform(food="thai")')], {}),
}  # fmt: skip
"""By rule: the user, its agenda, its answers to acts of the system, and its mind after them."""


@pytest.mark.parametrize("rule", ANSWERS)
def test_what_it_says_to_an_offer(rule):
    check_answers(*ANSWERS[rule])


def test_another_row_begins_the_requests_again():
    talk = Talk().agenda("bye()")
    talk.reply(OFFER, 'inform(name="venue 0",phone="1")')
    talk.agenda("bye()").reply('inform(name="venue 2",food="thai",area="north")')
    assert talk.me.requests == {"name": "venue 2", "phone": None}


@pytest.mark.parametrize(("offer", "answer"), [(OTHER, "request(phone)"), (OFFER, "reqalts()")])
def test_it_takes_the_next_row_but_not_the_one_that_it_did_not_want(offer, answer):
    talk = Talk(alternative=1)
    talk.reply(OFFER)
    assert talk.agenda("bye()").reply(offer) == answer
    assert (("name", "venue 3") in talk.goal) == (offer == OTHER)


def test_with_its_goal_it_gives_up_the_row_that_it_had():
    talk = Talk(relax=1).agenda("bye()")
    talk.reply(OFFER)
    assert ("name", "venue 0") in talk.goal
    talk.reply(NOTHING)
    assert "name" not in dict(talk.goal)


def test_it_may_ask_about_the_row_that_it_does_not_want():
    talk = Talk(overrule_correction=1)
    talk.goal = [("name", "!venue 0")]
    assert talk.reply(OFFER) == 'confirm(name="venue 0")'


@pytest.mark.parametrize(
    ("chances", "answers"),
    [
        ({"tell_change": 1, "relax": 1}, {'reqalts(food="dontcare")', 'reqalts(area="dontcare")'}),
        ({"tell_change": 1},
         {'reqalts(food="greek")', 'reqalts(food="cafe")', 'reqalts(area="south")'}),
    ],
)  # fmt: skip
def test_or_change_its_goal_and_tell(chances, answers):
    heard = {Talk(seed=s, alternative_goal=1, **chances).reply(OFFER) for s in range(60)}
    assert heard == answers


def test_where_there_is_nothing_it_relaxes_what_the_system_spoke_of():
    for seed in range(20):
        talk = Talk(seed=seed, relax=1)
        assert talk.reply('inform(name="none",food="thai")') == 'reqalts(food="dontcare")'
        assert talk.goal == [("area", "north"), ("food", "dontcare")]
        assert talk.me.told_none


def test_nothing_at_all_is_no_news_about_its_goal():
    talk = Talk(relax=1)
    assert talk.reply('inform(name="none")').startswith("reqalts(")
    assert not talk.me.told_none


@pytest.mark.parametrize(("chance", "answer"), [(1, "bye()"), (0, 'inform(type="restaurant")')])
def test_without_anything_to_relax_it_gives_up_or_begins_again(chance, answer):
    talk = Talk([], give_up=chance).agenda("bye()")
    talk.me.offered = True
    assert talk.reply('inform(name="none",food="thai")') == answer


def test_of_the_rows_that_are_left_it_picks_one():
    talk = Talk().agenda("bye()", 'inform(area="north")')
    talk.goal = [("food", "thai"), ("area", "north"), ("name", "!venue 0")]
    said = 'inform(name="none",name!="venue 0",name!="venue 1",food="thai")'
    talk.me.offered = True
    assert talk.reply(said) == 'request(name="venue 1",phone)'
    assert talk.me.requests["name"] == "venue 1"
    assert ("area", "dontcare") in talk.goal  # the system did not speak of it
    assert talk.me.agenda == [parse_act("bye()")]


def test_what_was_asked_of_it_without_a_name_can_be_relaxed_as_well():
    """A system may ask for a value of no slot; the user then does not care about no slot."""
    talk = Talk(alternative_goal=1, no_preference=0, tell_change=1).agenda("bye()")
    talk.reply('request(="x")')
    assert talk.goal[-1] == ("", "dontcare")
    talk.me.constraints = talk.me.constraints[-1:]
    talk.agenda("bye()").reply('inform(name="venue 0")')
    assert talk.goal == [("", "dontcare")]
