"""The rule system: what it offers, answers, asks for and books."""

import numpy as np
import pytest

from dialgym.tasks.multiwoz.data import load_world
from dialgym.tasks.multiwoz.dialogue import Rules, Settings
from dialgym.tasks.multiwoz.fidelity import FAULTS, Fidelity
from dialgym.tasks.multiwoz.notation import print_acts, read_acts
from dialgym.tasks.multiwoz.types import MultiWOZBelief
from tests.support import convlab2

RNG = np.random.default_rng(0)


@pytest.fixture(params=["correct", "convlab2"])
def answer(request, rules):
    return lambda *texts: reply(rules[request.param], *texts)


def reply(rules: Rules, *texts: str) -> str:
    """The last reply of the system; utterances after ``S:`` were its own."""
    belief = MultiWOZBelief()
    for text in texts:
        if text.startswith("S:"):
            rules.tracker.heard(belief, read_acts(text[2:]))
        else:
            rules.tracker.update(belief, read_acts(text))
    return print_acts(rules.system.acts(belief, RNG))


SOUTH, BOOKED = 'Hotel-Inform(Area="south")', 'Booking-Book(Ref="00000001")'
WHOLE = 'Hotel-Inform(Area="south",People="2",Day="friday",Stay="1")'
OFFERED = ["Hotel-Inform()", 'S:Hotel-Recommend(Name="blue inn")']
MUSEUM = ['Attraction-Inform(Type="museum")', "Attraction-Request(Fee)"]
TRAIN = 'Train-Inform(Leave="09:00",Day="friday",Dest="elta",Depart="camford")'
REPLIES = {
    "no row": (
        ['Hotel-Inform(Area="south",Stars="4",Price="dontcare")'],
        'Hotel-NoOffer(Area="south",Stars="4")', None),
    "answers": (
        [SOUTH, "Hotel-Request(Phone,Addr)"], 'Hotel-Inform(Phone="01223000009",Addr="1 road")',
        None),
    "bookings": ([WHOLE], BOOKED, None),
    "details of the first train that matches": (
        [TRAIN, "Train-Request(Id,Time)"], 'Train-Inform(Id="TR0001",Time="30 minutes")', None),
    "an offer of a train": ([TRAIN], TRAIN.replace("Inform", "OfferBook"), None),
    "no train": (
        ['Train-Inform(Leave="23:59",Day="friday")'],
        'Train-NoOffer(Leave="23:59",Day="friday")', None),
    "answers are about the row that was offered, or the first that matches": (
        [*OFFERED, "Hotel-Request(Stars)"], 'Hotel-Inform(Stars="3")', 'Hotel-Inform(Stars="4")'),
    "answers about another row, once that is out": (
        [*OFFERED, 'Hotel-Inform(Area="centre")', "Hotel-Request(Stars)"],
        'Hotel-Inform(Stars="4")', 'Hotel-Inform(Stars="4")'),
    "what is not known": (
        MUSEUM, 'Attraction-Inform(Fee="unknown")', "Attraction-Inform(Fee)"),  # "?"
    "bookings wait for what is missing, or need one slot": (
        ['Hotel-Inform(Area="south",People="2")'], "Booking-Request(Day)", BOOKED),
    "bookings come with answers, or not": (
        [f"{WHOLE} Hotel-Request(Stars)"], f'Hotel-Inform(Stars="3") {BOOKED}', BOOKED),
    "where to, or not": (['Taxi-Inform(Leave="09:00")'], "Taxi-Request(Depart,Dest)", ...),
    "goodbye": (["general-bye()"], "general-bye()", "general-greet()"),
    "thanks": (["general-thank()"], "general-welcome()", ...),
    "a greeting": (["general-greet()"], "general-reqmore()", ...),
    "silence": ([""], "general-reqmore()", ...),
    "nothing to do": (["Police-Inform()"], "general-reqmore()", ...),
}  # fmt: skip
"""Texts, what the system says to the last, and the original's where it differs (... for any)."""


@pytest.mark.parametrize("case", REPLIES)
def test_replies(rules, case):
    texts, said, original = REPLIES[case]
    for fidelity, expected in (("correct", said), ("convlab2", original or said)):
        if expected is not ...:
            found = read_acts(reply(rules[fidelity], *texts))
            assert sorted(found) == sorted(read_acts(expected)), fidelity


def test_a_choice_of_rows(answer):
    for _ in range(20):
        acts = read_acts(answer("Hotel-Inform()"))
        assert acts[0] == read_acts('Hotel-Inform(Choice="2")')[0]
        assert acts[1].slot == "Name"
        assert acts[1].value in ("red house", "blue inn")
        assert {act.intent for act in acts[1:]} == {"Recommend"}
        assert len(acts) <= 4


def test_what_is_recommended():
    """In the original references too, names twice, and no prices of attractions."""
    said, world = {}, load_world("built-in")
    for fidelity in ("correct", "convlab2"):
        rules = Rules(world, Settings(fidelity=fidelity))
        turns = [read_acts(reply(rules, "Attraction-Inform()")) for _ in range(300)]
        said[fidelity] = {act.slot for acts in turns for act in acts if act.intent == "Recommend"}
        twice = any(len(set(acts)) < len(acts) for acts in turns)
        assert twice == (fidelity == "convlab2")
    both = {"Name", "Addr", "Area", "Fee", "Phone", "Post", "Type"}
    assert said == {"correct": both | {"Price"}, "convlab2": both | {"Ref"}}


@pytest.mark.parametrize("domain", ["Hotel", "Restaurant"])
def test_a_reference_is_told_once_it_is_booked(domain):
    """In the original before that, too."""
    for fidelity, early in (("correct", False), ("convlab2", True)):
        rules = Rules(load_world("built-in"), Settings(fidelity=fidelity))
        turns = [read_acts(reply(rules, f"{domain}-Inform()")) for _ in range(300)]
        assert ("Ref" in {act.slot for acts in turns for act in acts}) == early


def test_recommendations_of_the_original():
    """Each property that its 1,000 dialogues have of a place can be told here, and no other."""
    world, found = convlab2.world(), {}
    for dialogue in convlab2.recorded("rule_vs_agenda"):
        for turn in dialogue["turns"]:
            for intent, domain, slot, _ in turn.get("system_acts") or ():
                if intent == "Recommend":
                    found.setdefault(domain, set()).add(slot)
    told = Rules(world, Settings(fidelity="convlab2"))
    for domain in ("Attraction", "Hotel", "Restaurant"):
        turns = [read_acts(reply(told, f"{domain}-Inform()")) for _ in range(400)]
        slots = {act.slot for acts in turns for act in acts if act.intent == "Recommend"}
        assert slots == found[domain]


def test_the_only_row(answer):
    for _ in range(20):
        acts = read_acts(answer('Hotel-Inform(Area="south")'))
        told = {act.slot: act.value for act in acts}
        assert {act.intent for act in acts} == {"Inform"}
        blue = {"Name": "blue inn", "Area": "south", "Price": "cheap", "Type": "hotel",
                "Stars": "3", "Parking": "yes", "Internet": "yes"}  # fmt: skip
        assert told.items() <= blue.items()


def test_refusals_and_questions(answer):
    assert answer('Hotel-Inform(Stars="1",People="2")').startswith("Hotel-NoOffer")
    assert "Train-Request(Day,Dest,Depart)" in answer('Train-Inform(Leave="09:00")')


def test_times_of_trains_are_asked_for(answer):
    """The time to leave, to arrive, or both, each in a third."""
    asked = [{a.slot for a in read_acts(answer("Train-Inform()"))} for _ in range(600)]
    shares = [
        np.mean([times <= slots and not (others & slots) for slots in asked])
        for times, others in (({"Leave"}, {"Arrive"}), ({"Arrive"}, {"Leave"}))
    ]
    assert shares == pytest.approx([0.33, 0.33], abs=0.07)
    assert np.mean([{"Leave", "Arrive"} <= slots for slots in asked]) == pytest.approx(
        0.34, abs=0.07
    )


def test_taxis(rules):
    """The original does not ask where to."""
    said = 'Taxi-Inform(Leave="09:00")'
    assert reply(rules["convlab2"], said).startswith('Taxi-Inform(Car="cab",Phone="')
    whole = 'Taxi-Inform(Leave="09:00",Dest="blue inn",Depart="dontcare")'
    assert reply(rules["correct"], whole).startswith('Taxi-Inform(Car="cab",Phone="')
    asked = {reply(rules["convlab2"], "Taxi-Inform()") for _ in range(30)}
    assert asked == {"Taxi-Request(Leave)", "Taxi-Request(Leave,Arrive)"}


def test_two_domains_at_once(answer):
    said = answer('Hotel-Inform(Area="south") Attraction-Inform(Type="boat")')
    assert {act.domain for act in read_acts(said)} == {"Hotel", "Attraction"}


# ---------------------------------------------------------------------- fidelity


def test_every_fault_has_a_name_and_a_sentence():
    assert set(FAULTS) == set(Fidelity.__dataclass_fields__)
    for fault in FAULTS.values():
        assert fault.original.endswith(".")
        assert fault.default.endswith(".")


def test_fidelities():
    assert Fidelity.named("correct") == Fidelity()
    assert all(getattr(Fidelity.named("convlab2"), name) for name in FAULTS)
    assert Fidelity.named("greets+first_row") == Fidelity(greets=True, first_row=True)
    with pytest.raises(ValueError, match="first_row"):
        Fidelity.named("first_rows")
