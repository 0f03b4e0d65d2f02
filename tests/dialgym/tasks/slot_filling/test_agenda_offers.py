"""The simulated user and what it is offered: which row it takes, asks about, or does not want."""

import pytest

from dialgym.language.acts import parse_act
from tests.support.slot_talk import Talk

OFFER = 'inform(name="venue 0",food="thai",area="north")'
NOTHING = 'inform(name="none",food="thai",area="north")'


def test_an_offer_is_accepted_and_asked_about():
    talk = Talk(requests=("phone", "addr")).agenda("bye()")
    assert talk.reply(OFFER) == "request(phone)"
    assert talk.goal[-1] == ("name", "venue 0")
    assert talk.me.requests == {"name": "venue 0", "phone": None, "addr": None}
    assert talk.reply('inform(name="venue 0",phone="1")') == "request(addr)"
    assert talk.reply('inform(name="venue 0",addr="x")') == "bye()"


def test_it_may_ask_for_all_at_once_and_by_name():
    talk = Talk(requests=("phone", "addr"), request_more=1).agenda("bye()")
    assert talk.reply(OFFER) == "request(phone,addr)"
    talk = Talk(name_in_request=1).agenda("bye()")
    assert talk.reply(OFFER) == 'request(phone,name="venue 0")'


@pytest.mark.parametrize(("chance", "act"), [("thank", "thankyou()"), ("acknowledge", "ack()")])
def test_it_may_thank_first(chance, act):
    talk = Talk(**{chance: 1}).agenda("bye()")
    assert talk.reply(OFFER) == act


def test_it_may_go_on_with_its_agenda_first():
    talk = Talk(agenda_first=1).agenda("bye()", 'inform(parking="1")')
    assert talk.reply(OFFER) == 'inform(parking="1")'
    assert Talk(agenda_first=1).agenda("bye()").reply(OFFER) == "request(phone)"


def test_what_is_left_on_the_agenda_may_become_a_question():
    talk = Talk(confirm_informs=1, agenda_first=1).agenda("bye()", 'inform(parking="1")')
    assert talk.reply(OFFER) == 'confirm(parking="1")'
    talk = Talk(confirm_informs=1, agenda_first=1).agenda("bye()", 'inform(parking="dontcare")')
    assert talk.reply(OFFER) == 'inform(parking="dontcare")'


def test_another_row_begins_the_requests_anew():
    talk = Talk().agenda("bye()")
    talk.reply(OFFER, 'inform(name="venue 0",phone="1")')
    talk.agenda("bye()").reply('inform(name="venue 2",food="thai",area="north")')
    assert talk.me.requests == {"name": "venue 2", "phone": None}


def test_an_offer_that_misses_the_goal_is_corrected_and_its_answers_are_void():
    talk = Talk().agenda("bye()")
    assert talk.reply('inform(name="venue 2",food="greek",phone="1")') == 'inform(food="thai")'
    assert talk.me.requests == {"name": None, "phone": None}


def test_what_is_told_of_another_row_than_the_one_agreed_on_is_corrected():
    talk = Talk().agenda("bye()")
    talk.reply(OFFER)
    assert talk.reply('inform(name="venue 1",phone="1")') == 'inform(name="venue 0")'


def test_it_may_ask_about_the_row_that_it_does_not_want():
    talk = Talk(overrule_correction=1)
    talk.goal = [("name", "!venue 0")]
    assert talk.reply(OFFER) == 'confirm(name="venue 0")'


def test_it_may_confirm_what_the_offer_left_out():
    talk = Talk(confirm_unsaid=1).agenda("bye()")
    assert talk.reply('inform(name="venue 0",food="thai")') == 'confirm(area="north")'
    assert talk.me.requests == {"name": "venue 0", "phone": None, "food": "thai"}


def test_at_the_first_offer_it_may_want_another():
    talk = Talk(alternative=1)
    assert talk.reply(OFFER) == "reqalts()"
    assert talk.goal[-1] == ("name", "!venue 0")
    assert talk.agenda("bye()").reply(OFFER.replace("venue 0", "venue 3")) == "request(phone)"
    assert ("name", "venue 3") in talk.goal


def test_it_does_not_take_the_row_that_it_did_not_want():
    talk = Talk(alternative=1)
    talk.reply(OFFER)
    assert talk.agenda("bye()").reply(OFFER) == "reqalts()"


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


def test_or_change_it_without_telling():
    talk = Talk([("area", "north")], alternative_goal=1)
    assert talk.reply(OFFER) == "reqalts()"
    assert talk.goal == [("area", "south")]
    assert talk.me.requests["area"] is None  # to be asked about later
    talk = Talk([("area", "north")], alternative_goal=1, relax=1)
    assert talk.reply(OFFER) == "reqalts()"
    assert talk.goal == [("area", "dontcare"), ("name", "!venue 0")]


def test_where_there_is_nothing_it_relaxes_what_the_system_spoke_of():
    for seed in range(20):
        talk = Talk(seed=seed, relax=1)
        assert talk.reply('inform(name="none",food="thai")') == 'reqalts(food="dontcare")'
        assert talk.goal == [("area", "north"), ("food", "dontcare")]
        assert talk.me.told_none


def test_with_its_goal_it_gives_up_the_row_that_it_had():
    talk = Talk(relax=1).agenda("bye()")
    talk.reply(OFFER)
    assert ("name", "venue 0") in talk.goal
    talk.reply(NOTHING)
    assert [slot for slot, _ in talk.goal if slot == "name"] == []


def test_a_value_is_not_wanted_twice():
    talk = Talk([("area", "north")])
    assert talk.reply('inform(name="none",area="north")') == 'reqalts(area="south")'
    assert talk.reply('inform(name="none",area="south")') == 'reqalts(area="dontcare")'


def test_of_a_slot_that_it_did_not_think_of_it_wants_no_value():
    talk = Talk([("area", "north")])
    assert talk.reply('inform(name="none",parking="1")') == 'reqalts(parking="dontcare")'


def test_nothing_at_all_is_no_news_about_its_goal():
    talk = Talk(relax=1)
    assert talk.reply('inform(name="none")').startswith("reqalts(")
    assert not talk.me.told_none


def test_nothing_for_what_it_did_not_want_is_corrected():
    assert Talk().reply('inform(name="none",food="greek")') == 'inform(food="thai")'


@pytest.mark.parametrize(("chance", "answer"), [(1, "bye()"), (0, 'inform(type="restaurant")')])
def test_without_anything_to_relax_it_gives_up_or_begins_anew(chance, answer):
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
