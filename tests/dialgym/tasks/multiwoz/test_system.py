"""The rule system: what it offers, answers, asks for and books."""

import numpy as np
import pytest

from dialgym.tasks.multiwoz.data import load_world
from dialgym.tasks.multiwoz.dialogue import Rules, Settings
from dialgym.tasks.multiwoz.fidelity import FAULTS, Fidelity
from dialgym.tasks.multiwoz.notation import print_acts, read_acts
from dialgym.tasks.multiwoz.types import MultiWOZBelief
from tests.support import convlab2, small_city

RNG = np.random.default_rng(0)


@pytest.fixture(scope="module")
def rules(tmp_path_factory):
    city = load_world(small_city.write_city(tmp_path_factory.mktemp("city")))
    return {name: Rules(city, Settings(fidelity=name)) for name in ("correct", "convlab2")}


@pytest.fixture(params=["correct", "convlab2"])
def answer(request, rules):
    return lambda *texts: reply(rules[request.param], *texts)


def reply(rules: Rules, *texts: str) -> str:
    """What the system says in the end; utterances after ``S:`` were its own."""
    belief = MultiWOZBelief()
    for text in texts:
        if text.startswith("S:"):
            rules.tracker.heard(belief, read_acts(text[2:]))
        else:
            rules.tracker.update(belief, read_acts(text))
    return print_acts(rules.system.acts(belief, RNG))


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


def test_no_row(answer):
    said = answer('Hotel-Inform(Area="south",Stars="4",Price="dontcare")')
    assert set(read_acts(said)) == set(read_acts('Hotel-NoOffer(Area="south",Stars="4")'))


def test_answers(answer):
    said = answer('Hotel-Inform(Area="south")', "Hotel-Request(Phone,Addr)")
    assert said == 'Hotel-Inform(Phone="01223000009",Addr="1 road")'


def test_answers_are_about_the_row_that_was_offered(rules):
    """In the original about the first that matches."""
    said = "Hotel-Inform()", 'S:Hotel-Recommend(Name="blue inn")', "Hotel-Request(Stars)"
    assert reply(rules["correct"], *said) == 'Hotel-Inform(Stars="3")'
    assert reply(rules["convlab2"], *said) == 'Hotel-Inform(Stars="4")'
    moved = *said[:2], 'Hotel-Inform(Area="centre")', "Hotel-Request(Stars)"
    assert reply(rules["correct"], *moved) == 'Hotel-Inform(Stars="4")'


def test_what_is_not_known(rules):
    said = 'Attraction-Inform(Type="museum")', "Attraction-Request(Fee)"
    assert reply(rules["correct"], *said) == 'Attraction-Inform(Fee="unknown")'
    assert reply(rules["convlab2"], *said) == "Attraction-Inform(Fee)"  # "?"


def test_bookings(answer):
    said = answer('Hotel-Inform(Area="south",People="2",Day="friday",Stay="1")')
    assert said == 'Booking-Book(Ref="00000001")'


def test_bookings_wait_for_what_is_missing(rules):
    """In the original one slot is enough."""
    said = 'Hotel-Inform(Area="south",People="2")'
    assert reply(rules["correct"], said) == "Booking-Request(Day)"
    assert reply(rules["convlab2"], said) == 'Booking-Book(Ref="00000001")'


def test_bookings_come_with_answers(rules):
    said = 'Hotel-Inform(Area="south",People="2",Day="friday",Stay="1") Hotel-Request(Stars)'
    assert reply(rules["correct"], said) == 'Hotel-Inform(Stars="3") Booking-Book(Ref="00000001")'
    assert reply(rules["convlab2"], said) == 'Booking-Book(Ref="00000001")'


def test_no_row_no_booking(answer):
    assert answer('Hotel-Inform(Stars="1",People="2")').startswith("Hotel-NoOffer")


def test_trains(answer):
    assert "Train-Request(Day,Dest,Depart)" in answer('Train-Inform(Leave="09:00")')
    said = answer('Train-Inform(Leave="09:00",Day="friday",Dest="elta",Depart="camford")')
    assert set(read_acts(said)) == set(
        read_acts('Train-OfferBook(Leave="09:00",Day="friday",Dest="elta",Depart="camford")')
    )
    none = answer('Train-Inform(Leave="23:59",Day="friday")')
    assert set(read_acts(none)) == set(read_acts('Train-NoOffer(Leave="23:59",Day="friday")'))


def test_times_of_trains_are_asked_for(answer):
    """When to leave, when to arrive, or both, each in a third."""
    asked = [{a.slot for a in read_acts(answer("Train-Inform()"))} for _ in range(600)]
    shares = [
        np.mean([times <= slots and not (others & slots) for slots in asked])
        for times, others in (({"Leave"}, {"Arrive"}), ({"Arrive"}, {"Leave"}))
    ]
    assert shares == pytest.approx([0.33, 0.33], abs=0.07)
    assert np.mean([{"Leave", "Arrive"} <= slots for slots in asked]) == pytest.approx(
        0.34, abs=0.07
    )


def test_details_of_trains(answer):
    """Of the first that matches."""
    train = 'Train-Inform(Leave="09:00",Day="friday",Dest="elta",Depart="camford")'
    assert answer(train, "Train-Request(Id,Time)") == 'Train-Inform(Id="TR0001",Time="30 minutes")'


def test_taxis(rules):
    """The original does not ask where to."""
    said = 'Taxi-Inform(Leave="09:00")'
    assert reply(rules["correct"], said) == "Taxi-Request(Depart,Dest)"
    assert reply(rules["convlab2"], said).startswith('Taxi-Inform(Car="cab",Phone="')
    whole = 'Taxi-Inform(Leave="09:00",Dest="blue inn",Depart="dontcare")'
    assert reply(rules["correct"], whole).startswith('Taxi-Inform(Car="cab",Phone="')
    assert {reply(rules["convlab2"], "Taxi-Inform()") for _ in range(30)} == {
        "Taxi-Request(Leave)",
        "Taxi-Request(Leave,Arrive)",
    }


def test_nothing_to_say(rules):
    for said, correct in (("general-bye()", "bye"), ("general-thank()", "welcome"),
                          ("general-greet()", "reqmore"), ("", "reqmore"),
                          ("Police-Inform()", "reqmore")):  # fmt: skip
        assert reply(rules["correct"], said) == f"general-{correct}()"
    assert reply(rules["convlab2"], "general-bye()") == "general-greet()"


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
