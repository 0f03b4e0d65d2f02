"""Acts that take a value as understood and request another slot."""

import numpy as np
import pytest

from dialgym.language.acts import parse_act, print_act
from dialgym.tasks.slot_filling import SlotFilling
from dialgym.tasks.slot_filling.domain.database import EntityDatabase
from dialgym.tasks.slot_filling.domain.ontology import Ontology
from dialgym.tasks.slot_filling.settings import SystemSettings
from dialgym.tasks.slot_filling.summary import Summariser
from dialgym.tasks.slot_filling.summary_acts import Offers, SummaryActs
from dialgym.tasks.slot_filling.tracker import Layout
from dialgym.testing import check_batch, check_task, check_views
from tests.support.slot_talk import Ear, Talk

THAI, BOTH = 'inform(food="thai")', 'inform(food="thai",parking="1")'
CONFREQ = 'confreq(food="thai",area)'


def acts(ear, **settings):
    return SummaryActs(ear.summariser, settings=SystemSettings(confreq=True, **settings))


def said(ear, name, **settings):
    rng = np.random.default_rng(0)
    found = acts(ear, **settings).act(name, ear.belief, ear.summary, parse_act("hello()"), rng)
    return print_act(found)


def test_there_is_one_of_each_two_slots_that_needs_a_value_of_the_first():
    ear = Ear().hear("hello()", THAI)
    found, plain = acts(ear), SummaryActs(ear.summariser)
    slots = ear.summariser.asked
    names = [f"confreq_{first}_{second}" for first in slots for second in slots if first != second]
    assert found.names == (*plain.names, *names)
    assert found.phrases[-1] == "confreq parking food"
    mask = found.mask(ear.belief, ear.summary)
    free = {name for name, allowed in zip(found.names, mask) if allowed}
    assert {name for name in free if name.startswith("confreq")} == {
        "confreq_food_area", "confreq_food_parking"
    }  # fmt: skip
    assert (mask[: len(plain.names)] == plain.mask(ear.belief, ear.summary)).all()


def test_two_acts_of_one_name_are_refused():
    slots = ("a", "a_b", "b_c", "c")
    informable = {**dict.fromkeys(slots, ("x", "y")), "name": ("n",)}
    ontology = Ontology("Toy", "bar", informable, ("name",), slots)
    database = EntityDatabase([dict.fromkeys(slots, "x") | {"name": "n"}], ontology)
    summariser = Summariser(Layout(ontology), database, False)
    assert SummaryActs(summariser).names
    with pytest.raises(ValueError, match="names of their own; got 'confreq_a_b_c' for two pairs"):
        SummaryActs(summariser, settings=SystemSettings(confreq=True))


def test_a_row_without_anything_but_a_name_is_told_by_it():
    ontology = Ontology("Toy", "bar", {"area": ("x",), "name": ("n",)}, ("name",), ("area",))
    offers = Offers(EntityDatabase([{"name": "n", "area": "x"}], ontology))
    assert print_act(offers.details("n", (), np.random.default_rng(0))) == 'inform(name="n")'


def test_it_becomes_a_value_and_a_request_and_perhaps_the_rows_that_are_left():
    ear = Ear().hear("hello()", BOTH)
    assert said(ear, "confreq_food_area") == CONFREQ
    count = ear.summariser.found(ear.summary.accepted).bit_count()
    assert count > 1
    counted = f'confreq(count="{count}",parking="1",food="thai",area)'
    assert said(ear, "confreq_food_area", venue_count=True) == counted
    ear.hear("hello()", 'inform(food="cafe")')  # of which there is one row, or none
    assert said(ear, "confreq_food_area", venue_count=True) == 'confreq(food="cafe",area)'


@pytest.mark.parametrize("act", [CONFREQ, 'confreq(count="2",parking="1",food="thai",area)'])
def test_a_short_answer_is_about_the_slot_that_is_requested(act):
    ear = Ear().hear("hello()", BOTH).hear(act, 'inform(="dontcare")')
    assert (ear.p("area", "dontcare"), ear.p("food", "thai")) == (1.0, 1.0)
    ear = Ear().hear("hello()", THAI).hear('confreq(food="thai",parking)', "affirm()")
    assert ear.p("parking", "1") == 1.0


@pytest.mark.parametrize("count", ["", 'count="3",parking="1",'])
def test_the_user_answers_the_request_or_objects(count):
    goal = (("food", "thai"), ("area", "north"), ("parking", "1"))
    assert Talk(goal).agenda("ack()").reply(f'confreq({count}food="thai",area)') == (
        'inform(area="north")'
    )
    objected = parse_act(Talk(goal).agenda("ack()").reply(f'confreq({count}food="greek",area)'))
    assert objected.type in ("negate", "deny", "inform")
    assert objected.values("food")[-1] == "thai"


@pytest.mark.parametrize("language", ["acts", pytest.param("english", marks=pytest.mark.slow)])
def test_all_views_agree(language):
    task = SlotFilling(env=3, confreq=True, venue_count=True, language=language, turns=6)
    check_task(task, 2)
    check_views(task, episodes=1)
    check_batch(task, num_envs=2, steps=16)


def test_it_is_said_in_english():
    task = SlotFilling(confreq=True, language="english")
    rng = np.random.default_rng(0)
    for act, text in (
        (CONFREQ, "You want something with thai food. "),
        (
            CONFREQ.replace("(", '(count="3",', 1),
            "There are 3. You want something with thai",
        ),
    ):
        assert task.language.say(parse_act(act), "system", rng).startswith(text)
