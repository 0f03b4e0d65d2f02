"""Summary acts: the mask, row by row, and what each act becomes."""

import numpy as np
import pytest

from dialgym.language.acts import parse_act, print_act
from dialgym.tasks.slot_filling.domain.database import MISSING
from dialgym.tasks.slot_filling.domain.domain import load_domain
from dialgym.tasks.slot_filling.own_settings import masks_of
from dialgym.tasks.slot_filling.settings import SystemSettings
from dialgym.tasks.slot_filling.summary_acts import SummaryActs
from tests.support.slot_domains import database_of, five_slots
from tests.support.slot_talk import DATABASE, Ear

OFFER = 'inform(name="venue 0",food="thai")'
THAI, GREEK, NORTH = 'inform(food="thai")', 'inform(food="greek")', 'inform(area="north")'
SURE = ("hello()", 'inform(food="thai",area="north",parking="1")')
"""All slots are known, so that nothing is left to ask."""
ASK = {"request_area", "request_food", "request_parking"}
VENUE_2, VENUE_3 = 'inform(name="venue 2")', 'inform(name="venue 3")'
ALTERNATIVES = [("hello()", 'inform(food="greek",area="dontcare")'), (VENUE_2, "reqalts()")]

ALLOWED = {
    "a slot can always be requested": ([], ASK, {"confirm_food", "inform"}),
    "though it is known": ([SURE], ASK, {"inform_byname", "bye", "reqmore"}),
    "though the user leaves": ([SURE, (OFFER, "bye()")], ASK, {"inform"}),
    "confirm needs a value": (
        [("hello()", (THAI, 0.01))], {"confirm_food"}, {"confirm_area"}),
    "select needs two values, and inform rows that do not differ": (
        [("hello()", THAI)], set(), {"select_food", "inform"}),
    "however little the second is believed": (
        [("hello()", (THAI, 0.5), (GREEK, 0.01))], {"select_food"}, set()),
    "inform needs constraints that leave nothing to ask": (
        [("hello()", THAI), ("request(area)", NORTH)], {"inform"}, set()),
    "inform is free where one row is left": (
        [("hello()", 'inform(food="cafe")')], {"inform"}, set()),
    "or none": ([("hello()", 'inform(food="cafe",area="north")')], {"inform"}, set()),
    "inform is no alternative": ([SURE, (OFFER, "reqalts()")], set(), {"inform"}),
    "and no beginning": ([SURE, (OFFER, "restart()")], set(), {"inform"}),
    "inform_byname needs a question about a row": (
        [SURE, (OFFER, "request(phone)")], {"inform_byname"}, {"inform"}),
    "which no value is": ([SURE, (OFFER, THAI)], set(), {"inform_byname"}),
    "or its name": ([("hello()", 'inform(name="venue 1")')], {"inform_byname"}, set()),
    "bye needs that the user leaves": (
        [SURE, (OFFER, ("bye()", 0.51), (THAI, 0.49))], {"bye"}, set()),
    "rather than not": ([SURE, (OFFER, ("bye()", 0.49), (THAI, 0.51))], set(), {"bye"}),
    "reqmore needs an offer, inform_alternatives that they are asked for": (
        [SURE, (OFFER, "ack()")], {"reqmore"}, {"inform_alternatives"}),
}  # fmt: skip
"""By rule: turns of system and user, and acts that are then allowed, and masked."""

SAID = {
    "inform offers the first row that fits": (
        [("hello()", 'inform(food="greek",parking="dontcare")')], "inform",
        'inform(name="venue 2",food="greek",parking="0")'),
    "the last row again if it fits": (
        [("hello()", GREEK), (VENUE_3, "ack()")], "inform",
        'inform(name="venue 3",food="greek")'),
    "and only if it does": (
        [("hello()", GREEK), (VENUE_3, "ack()"), ("hello()", 'inform(parking="0")')], "inform",
        'inform(name="venue 2",food="greek",parking="0")'),
    "inform says that there is nothing": (
        [("hello()", 'inform(food="cafe",area="north",parking="dontcare")')], "inform",
        'inform(name="none",area="north",food="cafe")'),
    "the first alternative": (
        ALTERNATIVES[:1], "inform_alternatives",
        'inform(name="venue 2",area="north",food="greek")'),
    "the second": (
        ALTERNATIVES, "inform_alternatives",
        'inform(name="venue 3",area="north",food="greek")'),
    "until there is none": (
        [*ALTERNATIVES, (VENUE_3, "reqalts()")], "inform_alternatives",
        'inform(name="none",name!="venue 2",name!="venue 3",area="dontcare",food="greek")'),
    "byname tells what is asked": (
        [(VENUE_2, "request(phone,food)")], "inform_byname",
        'inform(name="venue 2",food="greek",phone="0002")'),
    "of the row that is named": (
        [(VENUE_2, 'request(phone,name="venue 4")')], "inform_byname",
        'inform(name="venue 4",phone="0004")'),
    "a name is told once": (
        [(VENUE_2, 'confirm(name="venue 2")')], "inform_byname", VENUE_2),
}  # fmt: skip
"""By rule: turns of system and user, a summary act, and what it becomes."""


class Acts(Ear):
    """Summary acts over a belief."""

    def __init__(self, masks=True, numbers=None, **kwargs):
        super().__init__(**kwargs)
        numbers = SystemSettings(**(numbers or {}))
        self.acts = SummaryActs(self.summariser, masks_of(masks, True), numbers)

    def after(self, *turns):
        for turn in turns:
            self.hear(*turn)
        return self

    @property
    def allowed(self):
        mask = self.acts.mask(self.belief, self.summary)
        return {name for name, free in zip(self.acts.names, mask) if free}

    def act(self, name, last="hello()", seed=0):
        rng = np.random.default_rng(seed)
        return print_act(self.acts.act(name, self.belief, self.summary, parse_act(last), rng))


def sure():
    return Acts().after(SURE)


def test_the_acts_are_three_of_each_slot_and_seven():
    names = Acts().acts.names
    assert names[:6] == ("request_area", "confirm_area", "select_area",
                         "request_food", "confirm_food", "select_food")  # fmt: skip
    assert names[9:] == ("inform", "inform_byname", "inform_alternatives", "bye", "repeat",
                         "reqmore", "restart")  # fmt: skip
    assert len(names) == 3 * len(DATABASE.ontology.system_requestable) + 7


@pytest.mark.parametrize("rule", ALLOWED)
def test_what_is_allowed(rule):
    turns, free, masked = ALLOWED[rule]
    allowed = Acts().after(*turns).allowed
    assert free <= allowed
    assert not masked & allowed


@pytest.mark.parametrize("act", ["bye()", "restart()"])
def test_unless_the_user_is_not_sure_to_leave(act):
    ear = sure().hear(OFFER, (act, 0.49), ('inform(food="thai")', 0.3), ("reqalts()", 0.21))
    assert max(ear.methods, key=ear.methods.get) not in ("byconstraints", "none")
    assert "inform" in ear.allowed
    assert "bye" not in ear.allowed
    ear = sure().hear(OFFER, (act, 0.51), ('inform(food="thai")', 0.3), ("reqalts()", 0.19))
    assert "inform" not in ear.allowed


def test_four_accepted_slots_are_enough():
    ear = Acts(database=five_slots()).hear("hello()", 'inform(food="thai",area="north",pets="1")')
    assert "inform" not in ear.allowed
    assert "inform" in ear.hear("request(parking)", "affirm()").allowed


def test_how_many_are_enough_is_a_setting():
    turns = ("hello()", 'inform(food="thai",area="north")')
    for enough in (1, 2, 3, 9):
        ear = Acts(database=five_slots(), numbers={"inform_accepted": enough}).hear(*turns)
        assert ("inform" in ear.allowed) == (enough <= 2)


@pytest.mark.parametrize("turns", [[], [SURE], [SURE, (OFFER, "reqalts()")]], ids=str)
def test_each_group_of_acts_has_a_mask_of_its_own(turns):
    """Where it is off, its acts are free, and the others are as with all masks."""
    groups = {
        "inform": {"inform", "inform_byname", "inform_alternatives"},
        "bye": {"bye"},
        "request": {f"{ask}_{slot}" for ask in ("confirm", "select")
                    for slot in ("area", "food", "parking")} | {"reqmore"},
    }  # fmt: skip
    masked = Acts().after(*turns).allowed
    for off, acts in groups.items():
        assert Acts(masks={off: False}).after(*turns).allowed == masked | acts
    everything = dict.fromkeys(groups, False)
    assert Acts(masks=everything).allowed == Acts(masks=False).allowed


def test_inform_byname_needs_a_row():
    """The original hears a question about a row before there is one."""
    ear = Acts(fidelity="pydial").hear("hello()", "request(phone)")
    assert ear.summary.method == "byname"
    assert "inform_byname" not in ear.allowed


def test_inform_alternatives_needs_an_offer_and_that_they_were_asked_for():
    for ear, offered in ((sure(), False), (sure().hear(OFFER, "ack()"), True)):
        ear.belief.alternatives = True
        assert ("inform_alternatives" in ear.allowed) == offered


@pytest.mark.parametrize("masks", [True, False])
def test_repeat_and_restart_are_never_free(masks):
    ear = Acts(masks=masks)
    assert not {"repeat", "restart"} & ear.allowed
    assert masks or len(ear.allowed) == len(ear.acts.names) - 2


# what they become


@pytest.mark.parametrize("rule", SAID)
def test_what_is_said(rule):
    turns, name, text = SAID[rule]
    assert Acts().after(*turns).act(name) == text


def test_questions():
    ear = Acts().hear("hello()", ('inform(food="thai")', 0.5), ('inform(food="greek")', 0.2))
    assert ear.act("request_food") == "request(food)"
    assert ear.act("confirm_food") == 'confirm(food="thai")'
    assert ear.act("select_food") == 'select(food="thai",food="greek")'
    assert ear.act("reqmore") == "reqmore()"
    assert ear.act("bye") == "bye()"
    assert ear.act("repeat", "request(food)") == "request(food)"
    assert ear.act("restart") == "null()"


def test_questions_without_any_value_are_about_the_first():
    ear = Acts(masks=False)
    assert ear.act("confirm_food") == 'confirm(food="thai")'
    assert ear.act("select_food") == 'select(food="thai",food="greek")'
    ear.hear("hello()", ('inform(food="greek")', 0.2))
    assert ear.act("select_food") == 'select(food="greek",food="thai")'
    ear.hear("hello()", 'inform(food="thai")')
    assert ear.act("select_food") == 'select(food="thai",food="greek")'


def test_inform_without_constraints_offers_any_row():
    ear = Acts().hear("hello()", 'inform(food="dontcare")')
    names = {parse_act(ear.act("inform", seed=s)).value("name") for s in range(60)}
    assert names == {f"venue {i}" for i in range(5)}


def test_an_offer_leaves_out_what_is_not_known():
    database = database_of({"area": MISSING, "parking": ""})
    ear = Acts(database=database).hear("hello()", 'inform(area="dontcare",parking="dontcare")')
    ear.hear("hello()", 'inform(food="thai")')
    assert ear.act("inform") == 'inform(name="venue 0",food="thai")'


def test_an_act_tells_of_five_slots_at_most_and_of_any():
    database = load_domain("Laptops").database
    slots = database.ontology.system_requestable[:7]
    said = ",".join(f'{slot}="{database.rows[0][slot]}"' for slot in slots)
    ear = Acts(database=database).hear("hello()", f"inform({said})")
    assert len(ear.summary.accepted) == 7
    told = [parse_act(ear.act("inform", seed=seed)).items for seed in range(40)]
    assert {len(items) for items in told} == {1 + 5}
    assert {item.slot for items in told for item in items[1:]} == set(slots)


@pytest.mark.parametrize("most", [1, 3])
def test_how_many_it_tells_of_is_a_setting(most):
    ear = Acts(numbers={"inform_slots": most}).after(SURE)
    told = [parse_act(ear.act("inform", seed=seed)).items[1:] for seed in range(40)]
    assert {len(items) for items in told} == {most}
    assert {item.slot for items in told for item in items} == {"area", "food", "parking"}
    ear.hear(VENUE_2, "request(phone,food,addr)")
    assert len(parse_act(ear.act("inform_byname")).items) == most + 1


def test_byname_tells_anything_where_nothing_is_asked():
    ear = Acts().hear('inform(name="venue 2")', "ack()")
    told = {parse_act(ear.act("inform_byname", seed=s)).items[1].slot for s in range(60)}
    assert told == {"food", "area", "phone", "addr"}


def test_byname_of_no_row_tells_of_any():
    names = {parse_act(Acts().act("inform_byname", seed=s)).value("name") for s in range(60)}
    assert names == {f"venue {i}" for i in range(5)}


# summaries


def test_a_value_is_accepted_above_chance_and_none():
    """Three values: 1 / 2.9."""
    ear = Acts().hear("hello()", ('inform(food="thai")', 0.34), ('inform(food="greek")', 0.33),
                      ('inform(food="cafe")', 0.33))  # fmt: skip
    assert ear.summary.accepted == ()
    ear = Acts().hear("hello()", ('inform(food="thai")', 0.36), ('inform(food="greek")', 0.34))
    assert [(a.slot, a.value) for a in ear.summary.accepted] == [("food", "thai")]
    ear = Acts().hear("hello()", ('inform(food="thai")', 0.36))
    assert ear.summary.accepted == ()


@pytest.mark.parametrize(
    ("rows", "block"), [(1, "01000"), (2, "00100"), (4, "00100"), (5, "00010")]
)
def test_the_vector_tells_few_rows_from_many(rows, block):
    ear = Acts(database=database_of(*[{}] * rows))
    vector = ear.summariser.vector(ear.belief, ear.summary)
    assert "".join(f"{p:.0f}" for p in vector[-5:]) == block


def test_the_vector_counts_rows_by_the_best_supported_slots():
    ear = Acts().hear("hello()", 'inform(parking="1")')
    ear.hear("hello()", ('inform(area="south")', 0.8), ('inform(food="greek")', 0.2))
    ear.hear("hello()", ('inform(food="thai")', 0.7))
    vector = ear.summariser.vector(ear.belief, ear.summary)
    blocks = vector[-25:].reshape(5, 5).tolist()
    assert blocks[0] == [0, 0, 1, 0, 1]  # parking: three rows, which differ
    assert blocks[1:] == [[0, 1, 0, 0, 0]] * 4  # and south: one row
    ear = (
        Acts().hear("hello()", 'inform(food="cafe")').hear("hello()", ('inform(area="south")', 0.8))
    )
    blocks = ear.summariser.vector(ear.belief, ear.summary)[-25:].reshape(5, 5).tolist()
    assert blocks == [[0, 1, 0, 0, 0]] * 5  # the one cafe first, not the two rows in the south
    assert vector[-27:-25].tolist() == [0, 0]
    nothing = Acts()
    vector = nothing.summariser.vector(nothing.belief, nothing.summary)
    assert vector[-25:].reshape(5, 5).tolist() == [[0, 0, 0, 1, 1]] * 5
    offered = sure().hear(OFFER, "ack()")
    assert offered.summariser.vector(offered.belief, offered.summary)[-27:-25].tolist() == [0, 1]
