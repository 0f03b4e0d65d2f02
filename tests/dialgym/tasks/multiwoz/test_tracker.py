"""The rule tracker, and the values that it and the user take others for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialgym.tasks.multiwoz.notation import read_acts
from dialgym.tasks.multiwoz.types import MultiWOZBelief
from dialgym.tasks.multiwoz.values import Vocabulary, partial_ratio
from tests.support import convlab2
from tests.support.city_talk import acts_of_anyone


@pytest.fixture
def trackers(rules):
    return {name: own.tracker for name, own in rules.items()}


@pytest.fixture(params=["correct", "convlab2"])
def tracker(request, trackers):
    return trackers[request.param]


def understood(tracker, *texts: str) -> MultiWOZBelief:
    """The belief after some utterances of the user; those after ``S:`` are the system's."""
    belief = MultiWOZBelief()
    for text in texts:
        if text.startswith("S:"):
            tracker.heard(belief, read_acts(text[2:]))
        else:
            tracker.update(belief, read_acts(text))
    return belief


@pytest.mark.parametrize(
    ("texts", "believed"),
    [
        (['Hotel-Inform(Area="south",People="2",Stay="3")'],
         {"area": "south", "people": "2", "stay": "3"}),
        (['Hotel-Inform(Area="south")', 'Hotel-Inform(Area="north")'], {"area": "north"}),
        (['Hotel-Inform(Area="south",Area="north")'], {"area": "north"}),
    ],
    ids=["of bookings too", "said later", "in one breath"],
)  # fmt: skip
def test_constraints(tracker, texts, believed):
    belief = understood(tracker, *texts)
    assert belief.constraints == {"hotel": believed}
    assert belief.domain == "hotel"


@pytest.mark.parametrize(
    "text",
    ["", "Hotel-Inform()", 'Hotel-Inform(Mood="good")', 'Spaceship-Inform(Area="north")',
     'Booking-Inform(Day="friday")', "general-bye()", 'Hotel-Inform(Choice="any")',
     'Hotel-Inform(Addr="1 road")', 'Hotel-Recommend(Area="north")'],
)  # fmt: skip
def test_what_changes_nothing(tracker, text):
    belief = understood(tracker, text)
    assert (belief.constraints, belief.requests) == ({}, {})


def test_requests(tracker):
    belief = understood(
        tracker, "Hotel-Request(Phone,Addr)", "Hotel-Request(Phone) Taxi-Request(Car)"
    )
    assert belief.requests == {"hotel": ("phone", "address"), "taxi": ("car type",)}


def test_requests_end_with_their_answers(trackers):
    """In the original they are kept."""
    said = "Hotel-Request(Phone,Addr)", 'S:Hotel-Inform(Phone="1")'
    assert understood(trackers["correct"], *said).requests == {"hotel": ("address",)}
    assert understood(trackers["convlab2"], *said).requests == {"hotel": ("phone", "address")}
    all_told = *said, 'S:Hotel-Recommend(Addr="1 road")'
    assert understood(trackers["correct"], *all_told).requests == {}


def test_bookings_of_the_system(trackers):
    """The original does not know of them."""
    said = 'Hotel-Inform(People="2")', 'S:Booking-Book(Ref="00000001")'
    assert understood(trackers["correct"], *said).booked == {"hotel": "00000001"}
    assert understood(trackers["convlab2"], *said).booked == {}
    train = understood(trackers["correct"], 'S:Train-OfferBooked(Ref="00000002")')
    assert train.booked == {"train": "00000002"}


def test_rows_that_are_offered(tracker):
    assert understood(tracker, 'S:Hotel-Recommend(Name="Blue Inn")').offered == {"hotel": 1}
    assert understood(tracker, 'S:Hotel-Recommend(Name="grey inn")').offered == {}


@given(st.lists(acts_of_anyone(), max_size=6), st.sampled_from(["correct", "convlab2"]))
def test_any_acts_can_be_tracked(rules, utterances, name):
    belief = MultiWOZBelief()
    for acts in utterances:
        rules[name].tracker.update(belief, acts)
        before = belief.copy()
        assert before == belief
        rules[name].tracker.heard(belief, acts)


# ---------------------------------------------------------------------- values


@pytest.mark.parametrize(
    ("said", "slot", "meant"),
    [
        ("Tall Table", "name", "tall table"),
        ("the tall  table", "name", "tall table"),
        ("tall tabel", "name", "tall table"),
        ("tall", "name", "tall"),
        ("table", "name", "table"),
        ("Greek", "food", "greek"),
        ("dontcare", "food", "dontcare"),
        ("center", "area", "centre"),
    ],
)
def test_close_values(city, said, slot, meant):
    assert Vocabulary(city, loose=False).normalised("restaurant", slot, said) == meant


def test_values_as_the_rows_spell_them(city):
    """The user compares with its goal, which is spelt as the rows are."""
    assert Vocabulary(city, loose=False).understood("restaurant", "food", "greek") == "Greek"
    assert Vocabulary(city, loose=False).understood("police", "name", "MAIN station") == (
        "Main Station"
    )


def test_none_means_yes_of_parking(city):
    for loose in (True, False):
        assert Vocabulary(city, loose).understood("hotel", "parking", "none") == "yes"


def test_values_of_the_original():
    """A name for which it knows a shorter one becomes that; the default keeps it."""
    world = convlab2.world()
    loose, close = Vocabulary(world, loose=True), Vocabulary(world, loose=False)
    assert loose.normalised("restaurant", "name", "meze bar restaurant") == "meze bar"
    assert loose.normalised("restaurant", "name", "ask") == "ask restaurant"
    for name in ("meze bar restaurant", "ask"):
        assert close.normalised("restaurant", "name", name) == name


@pytest.mark.parametrize(
    ("first", "second", "ratio"),
    [("", "", 100), ("", "a", 0), ("a", "", 0), ("abc", "xabcx", 100), ("tr1234", "tr1235", 83),
     ("abc", "xyz", 0), ("?", "north", 0)],
)  # fmt: skip
def test_partial_ratio(first, second, ratio):
    assert partial_ratio(first, second) == ratio


@given(st.text("abc ", max_size=8), st.text("abc ", max_size=8))
def test_partial_ratio_is_a_share(first, second):
    assert 0 <= partial_ratio(first, second) <= 100
    assert partial_ratio(first, first) == 100
