"""The handcrafted policy, rule by rule."""

from dataclasses import replace

import numpy as np
import pytest

from dialgym.language.acts import print_act
from dialgym.tasks.slot_filling.domain.database import EntityDatabase
from dialgym.tasks.slot_filling.policies import Handcrafted
from tests.support.slot_domains import database_of, five_slots
from tests.support.slot_talk import Ear

OFFER = 'inform(name="venue 0",food="thai")'


def choice(ear, seed=0):
    policy = Handcrafted(ear.summariser)
    name, act = policy.choose(ear.belief, ear.summary, np.random.default_rng(seed))
    return name, print_act(act)


def test_it_asks_for_slots_in_alphabetical_order():
    ear = Ear().hear("hello()", 'inform(type="restaurant")')
    assert choice(ear) == ("request_area", "request(area)")
    ear.hear("request(area)", 'inform(area="north")')
    assert choice(ear) == ("request_food", "request(food)")


@pytest.mark.parametrize(
    ("p", "said"),
    [
        (0.29, "request(area)"),
        (0.31, 'confirm(area="north")'),
        (0.61, 'confirm(area="north")'),
        (0.79, 'confirm(area="north")'),
        (0.81, "request(food)"),
    ],
)
def test_it_confirms_what_is_possible(p, said):
    assert choice(Ear().hear("hello()", ('inform(area="north")', p)))[1] == said


@pytest.mark.parametrize(("second", "said"), [(0.31, "select"), (0.29, "confirm")])
def test_it_lets_the_user_select_where_two_values_are_as_likely(second, said):
    heard = [('inform(area="north")', 0.5), ('inform(area="south")', second)]
    assert choice(Ear().hear("hello()", *heard))[0] == f"{said}_area"


def test_above_06_it_confirms_whatever_the_second_is():
    heard = [('inform(food="thai")', 0.61), ('inform(food="greek")', 0.39)]
    assert choice(Ear().hear("hello()", *heard))[0] == "confirm_food"


@pytest.mark.parametrize(
    ("heard", "said"),
    [
        ('inform(food="cafe")', 'inform(name="venue 4",food="cafe")'),
        ('inform(food="cafe",area="north")', 'inform(name="none",area="north",food="cafe")'),
        (
            'inform(food="greek",area="dontcare",parking="dontcare")',
            'inform(name="venue 2",area="north",food="greek",parking="0")',
        ),
    ],
)
def test_it_offers_once_asking_would_not_help(heard, said):
    assert choice(Ear().hear("hello()", heard)) == ("inform", said)


def test_it_offers_the_first_row_even_if_another_was_offered_last():
    ear = Ear().hear("hello()", 'inform(food="greek",area="dontcare",parking="dontcare")')
    ear.hear('inform(name="venue 3")', 'inform(food="greek")')
    assert choice(ear)[1].startswith('inform(name="venue 2"')


def test_more_than_three_accepted_slots_are_enough():
    ear = Ear(five_slots()).hear("hello()", 'inform(food="thai",area="north",pets="1")')
    assert choice(ear)[0] == "request_parking"
    ear.hear("request(parking)", ("affirm()", 0.7))  # it offers rather than confirm
    assert choice(ear)[0] == "inform"


def test_it_gives_alternatives():
    ear = Ear().hear("hello()", 'inform(food="greek",area="north")')
    ear.hear('inform(name="venue 2")', "reqalts()")
    said = 'inform(name="venue 3",area="north",food="greek")'
    assert choice(ear) == ("inform_alternatives", said)


def test_it_tells_what_is_asked():
    ear = Ear().hear("hello()", 'inform(food="thai")').hear(OFFER, "request(phone)")
    assert choice(ear) == ("inform_byname", 'inform(name="venue 0",phone="0000")')


def test_of_the_row_that_the_user_surely_names():
    for p, name in ((0.81, "venue 3"), (0.79, "venue 0")):
        asked = [('request(phone,name="venue 3")', p), ("request(phone)", 1 - p)]
        said = choice(Ear().hear("hello()", 'inform(food="thai")').hear(OFFER, *asked))
        assert said == ("inform_byname", f'inform(name="{name}",phone="000{name[-1]}")')


def test_any_name_is_that_of_the_row_offered_last():
    ear = Ear().hear("hello()", 'inform(food="thai")').hear(OFFER, 'request(phone,name="dontcare")')
    said = {choice(ear, seed) for seed in range(20)}
    assert said == {("inform_byname", 'inform(name="venue 0",phone="0000")')}


def test_a_question_about_no_row_leads_to_an_offer():
    ear = Ear(fidelity="pydial").hear("hello()", "request(phone)")
    assert ear.summary.method == "byname"
    assert choice(ear) == ("request_area", "request(area)")


def test_it_answers_rather_than_offer_again():
    ear = Ear().hear("hello()", 'inform(food="thai",area="north",parking="1")')
    ear.hear(OFFER, ("request(phone)", 0.6), ('inform(food="thai")', 0.4))
    ear.hear(OFFER, ('inform(food="thai")', 1.0))
    assert ear.summary.method == "byconstraints"
    assert choice(ear) == ("inform_byname", 'inform(name="venue 0",phone="0000")')
    ear = Ear().hear("hello()", 'inform(food="thai",area="north",parking="1")')
    ear.hear(OFFER, ("request(phone)", 0.6), ('inform(food="thai")', 0.4))
    ear.hear("reqmore()", 'inform(food="thai")')
    assert ear.requested == {"phone": 0.6}
    assert choice(ear)[0] == "inform"  # the offer was not the last thing said


@pytest.mark.parametrize("act", ["thankyou()", "ack()"])
def test_it_asks_for_more_when_thanked_for_an_offer(act):
    ear = Ear().hear("hello()", act)
    assert choice(ear)[0] == "request_area"
    ear = Ear().hear(OFFER, act)
    assert choice(ear) == ("reqmore", "reqmore()")


def test_it_leaves_with_the_user():
    assert choice(Ear().hear(OFFER, "bye()")) == ("bye", "bye()")
    assert choice(Ear().hear(OFFER, ("bye()", 0.4)))[0] != "bye"


def test_with_all_slots_known_it_offers_what_still_differs():
    """Rows that differ in a slot that the system cannot ask for."""
    toy = database_of({"area": "north"}, {"area": "south"})
    ontology = replace(toy.ontology, system_requestable=("food",))
    ear = Ear(EntityDatabase(toy.rows, ontology)).hear("hello()", 'inform(type="restaurant")')
    assert choice(ear)[0] == "request_food"
    assert choice(ear.hear("request(food)", 'inform(food="thai")'))[0] == "inform"
