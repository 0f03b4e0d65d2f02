"""The handcrafted policy, rule by rule."""

from dataclasses import replace

import numpy as np
import pytest

from dialgym.language.acts import print_act
from dialgym.tasks.slot_filling.domain.database import EntityDatabase
from dialgym.tasks.slot_filling.policies import Handcrafted
from dialgym.tasks.slot_filling.settings import SystemSettings
from tests.support.slot_domains import database_of, five_slots
from tests.support.slot_talk import Ear

OFFER = 'inform(name="venue 0",food="thai")'
THAI, NORTH = 'inform(food="thai")', 'inform(area="north")'
ALL = 'inform(food="thai",area="north",parking="1")'
GREEK = 'inform(food="greek",area="dontcare",parking="dontcare")'
ASKED = [("hello()", ALL), (OFFER, ("request(phone)", 0.6), (THAI, 0.4))]
PHONE = 'inform(name="venue 0",phone="0000")'

CHOICES = {
    "it asks for slots in alphabetical order": (
        [("hello()", 'inform(type="restaurant")')], "request_area", "request(area)"),
    "one after the other": (
        [("hello()", 'inform(type="restaurant")'), ("request(area)", NORTH)],
        "request_food", "request(food)"),
    "of what is possible at 0.29": ([("hello()", (NORTH, 0.29))], "request_area", "request(area)"),
    "it confirms what is possible at 0.31": (
        [("hello()", (NORTH, 0.31))], "confirm_area", 'confirm(area="north")'),
    "at 0.61": ([("hello()", (NORTH, 0.61))], "confirm_area", 'confirm(area="north")'),
    "at 0.79": ([("hello()", (NORTH, 0.79))], "confirm_area", 'confirm(area="north")'),
    "and takes it for sure at 0.81": (
        [("hello()", (NORTH, 0.81))], "request_food", "request(food)"),
    "it lets the user select where two values are as likely": (
        [("hello()", (NORTH, 0.5), ('inform(area="south")', 0.31))], "select_area", None),
    "but not where one is likelier": (
        [("hello()", (NORTH, 0.5), ('inform(area="south")', 0.29))], "confirm_area", None),
    "above 0.6 it confirms whatever the second is": (
        [("hello()", (THAI, 0.61), ('inform(food="greek")', 0.39))], "confirm_food", None),
    "it offers the only row": (
        [("hello()", 'inform(food="cafe")')], "inform", 'inform(name="venue 4",food="cafe")'),
    "it says that there is none": (
        [("hello()", 'inform(food="cafe",area="north")')], "inform",
        'inform(name="none",area="north",food="cafe")'),
    "it offers where nothing else matters": (
        [("hello()", GREEK)], "inform",
        'inform(name="venue 2",area="north",food="greek",parking="0")'),
    "it gives alternatives": (
        [("hello()", 'inform(food="greek",area="north")'),
         ('inform(name="venue 2")', "reqalts()")],
        "inform_alternatives", 'inform(name="venue 3",area="north",food="greek")'),
    "it tells what is asked": (
        [("hello()", THAI), (OFFER, "request(phone)")], "inform_byname", PHONE),
    "of the row that the user surely names": (
        [("hello()", THAI), (OFFER, ('request(phone,name="venue 3")', 0.81),
                             ("request(phone)", 0.19))],
        "inform_byname", 'inform(name="venue 3",phone="0003")'),
    "and of the one offered else": (
        [("hello()", THAI), (OFFER, ('request(phone,name="venue 3")', 0.79),
                             ("request(phone)", 0.21))], "inform_byname", PHONE),
    "it answers rather than offer again": ([*ASKED, (OFFER, THAI)], "inform_byname", PHONE),
    "but not where the offer was not the last thing said": (
        [*ASKED, ("reqmore()", THAI)], "inform", None),
    "thanks before an offer lead on": ([("hello()", "thankyou()")], "request_area", None),
    "and so does ack": ([("hello()", "ack()")], "request_area", None),
    "it asks for more when thanked for an offer": (
        [(OFFER, "thankyou()")], "reqmore", "reqmore()"),
    "or when that is acknowledged": ([(OFFER, "ack()")], "reqmore", "reqmore()"),
    "it leaves with the user": ([(OFFER, "bye()")], "bye", "bye()"),
}  # fmt: skip
"""By rule: turns of system and user, the summary act that is chosen, and what it says."""


def choice(ear, seed=0, **settings):
    policy = Handcrafted(ear.summariser, SystemSettings(**settings))
    name, act = policy.choose(ear.belief, ear.summary, np.random.default_rng(seed))
    return name, print_act(act)


@pytest.mark.parametrize("rule", CHOICES)
def test_what_it_chooses(rule):
    turns, name, text = CHOICES[rule]
    ear = Ear()
    for turn in turns:
        ear.hear(*turn)
    chosen = choice(ear)
    assert chosen == (name, text or chosen[1])


def test_it_offers_the_first_row_even_if_another_was_offered_last():
    ear = Ear().hear("hello()", GREEK).hear('inform(name="venue 3")', 'inform(food="greek")')
    assert choice(ear)[1].startswith('inform(name="venue 2"')


def test_more_than_three_accepted_slots_are_enough():
    ear = Ear(five_slots()).hear("hello()", 'inform(food="thai",area="north",pets="1")')
    assert choice(ear)[0] == "request_parking"
    ear.hear("request(parking)", ("affirm()", 0.7))  # it offers rather than confirm
    assert choice(ear)[0] == "inform"


def test_any_name_is_that_of_the_row_offered_last():
    ear = Ear().hear("hello()", 'inform(food="thai")').hear(OFFER, 'request(phone,name="dontcare")')
    said = {choice(ear, seed) for seed in range(20)}
    assert said == {("inform_byname", 'inform(name="venue 0",phone="0000")')}


def test_a_question_about_no_row_leads_to_an_offer():
    ear = Ear(fidelity="pydial").hear("hello()", "request(phone)")
    assert ear.summary.method == "byname"
    assert choice(ear) == ("request_area", "request(area)")


def test_it_does_not_leave_with_a_user_that_hardly_does():
    assert choice(Ear().hear(OFFER, ("bye()", 0.4)))[0] != "bye"


def test_with_all_slots_known_it_offers_what_still_differs():
    """Rows that differ in a slot that the system cannot ask for."""
    toy = database_of({"area": "north"}, {"area": "south"})
    ontology = replace(toy.ontology, system_requestable=("food",))
    ear = Ear(EntityDatabase(toy.rows, ontology)).hear("hello()", 'inform(type="restaurant")')
    assert choice(ear)[0] == "request_food"
    assert choice(ear.hear("request(food)", 'inform(food="thai")'))[0] == "inform"


def test_how_many_accepted_slots_are_enough_and_are_told_is_a_setting():
    ear = Ear(database=five_slots()).hear("hello()", 'inform(food="thai",area="north")')
    assert choice(ear)[0].startswith("request")
    name, said = choice(ear, inform_accepted=2, inform_slots=1)
    assert (name, said.count("=")) == ("inform", 2)
