"""The system's features, its acts without values, and their masks."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from dialgym.tasks.multiwoz.data import load_world
from dialgym.tasks.multiwoz.database import CityDatabase, Taxis
from dialgym.tasks.multiwoz.entries import (
    SYSTEM_ENTRIES,
    SYSTEM_NAMES,
    USER_ENTRIES,
    USER_NAMES,
    system_numbers,
)
from dialgym.tasks.multiwoz.fidelity import Fidelity
from dialgym.tasks.multiwoz.ontology import SLOT_NAMES
from dialgym.tasks.multiwoz.types import NONE, DialogueAct, MultiWOZBelief
from dialgym.tasks.multiwoz.vectors import STATE_SIZE, Vectoriser, feature_names

DATA = Path(__file__).parents[5] / "shared" / "data"
VOCABULARIES, TRACES = DATA / "multiwoz21_convlab", DATA / "convlab2" / "traces"
corpus = pytest.mark.skipif(not VOCABULARIES.exists(), reason="the corpus is not here")
traces = pytest.mark.skipif(not TRACES.exists(), reason="the recorded dialogues are not here")
RNG = np.random.default_rng(0)
RIGHT, LIKE_ORIGINAL = Fidelity(), Fidelity.named("convlab2")


def hotel(name: str, area: str, stars: str) -> dict[str, str]:
    return {"name": name, "area": area, "stars": stars, "phone": f"0{stars}", "pricerange": "cheap"}


@pytest.fixture
def database() -> CityDatabase:
    hotels = [hotel("a", "north", "1"), hotel("b", "north", "2"), hotel("c", "south", "3")]
    trains = [{"trainID": f"TR{i}", "day": "monday", "leaveAt": f"{i:02d}:00"} for i in range(9)]
    return CityDatabase({"hotel": hotels, "train": trains}, Taxis(("red",), ("ford",)))


@corpus
@pytest.mark.parametrize(("file", "names"), [("sys", SYSTEM_NAMES), ("usr", USER_NAMES)])
def test_the_vocabularies_are_those_of_the_corpus_in_order(file, names):
    assert list(names) == (VOCABULARIES / f"{file}_da_voc.txt").read_text().split()


def test_vocabularies_are_made_of_the_ontologys_slots():
    assert (len(SYSTEM_NAMES), len(USER_NAMES), len(feature_names())) == (209, 78, STATE_SIZE)
    assert len(set(feature_names())) == 340
    for entry in (*SYSTEM_ENTRIES, *USER_ENTRIES):
        assert entry.slot == NONE or entry.slot in SLOT_NAMES[entry.domain], entry


def recorded() -> list[
    tuple[MultiWOZBelief, bool, np.ndarray, np.ndarray, tuple[DialogueAct, ...]]
]:
    """Belief, end, state and action of each recorded turn, and what the system said."""
    rows = np.load(TRACES / "vectors.npz")
    with gzip.open(TRACES / "rule_vs_agenda.jsonl.gz", "rt") as lines:
        dialogues = {found["seed"]: found["turns"] for found in map(json.loads, lines)}
    read = []
    for seed, turn, state, action in zip(*(rows[k] for k in ("seed", "turn", "state", "action"))):
        turns = dialogues[int(seed)]
        now, before = turns[turn], turns[turn - 1]["system_acts"] if turn else []
        constraints = {d: dict(parts.get("semi", {})) for d, parts in now["belief_state"].items()}
        acts = tuple(DialogueAct(*act) for act in now["user_acts"])
        belief = MultiWOZBelief(constraints, {}, acts, tuple(DialogueAct(*act) for act in before))
        said = tuple(DialogueAct(*act) for act in now["system_acts"])
        read.append((belief, now["terminated"], state, action, said))
    return read


@traces
def test_features_and_actions_are_those_that_the_original_recorded():
    vectoriser = Vectoriser(load_world(DATA / "convlab2").database, LIKE_ORIGINAL)
    rows = recorded()
    assert len(rows) == 1050
    for belief, terminated, state, action, said in rows:
        assert np.array_equal(vectoriser.state(belief, terminated), state)
        assert np.array_equal(vectoriser.action(said), action)


@traces
def test_features_by_default_differ_in_the_bins_of_trains_alone():
    vectoriser = Vectoriser(load_world(DATA / "convlab2").database, RIGHT)
    differ = {
        number
        for belief, terminated, state, _, _ in recorded()
        for number in np.flatnonzero(vectoriser.state(belief, terminated) != state)
    }
    names = feature_names()
    assert {names[number].rpartition(":")[0] for number in differ} == {"matches:train"}


@pytest.mark.parametrize(
    ("count", "right", "original"), [(9, 3, 5), (0, 0, 0), (1, 1, 1), (2, 1, 2)]
)
def test_matching_trains_are_counted_in_bins_of_their_own(database, count, right, original):
    belief = MultiWOZBelief({"train": {"leaveAt": f"{9 - count:02d}:00"}})
    for fidelity, place in ((RIGHT, right), (LIKE_ORIGINAL, original)):
        state = Vectoriser(database, fidelity).state(belief)
        on = [name for name, bit in zip(feature_names(), state) if bit and ":train:" in name]
        assert on == [f"matches:train:{place}"]


def test_bookings_are_seen_but_by_the_original(database):
    belief = MultiWOZBelief(booked={"hotel": "00000001"})
    place = feature_names().index("booked:hotel")
    assert Vectoriser(database, RIGHT).state(belief)[place] == 1
    assert Vectoriser(database, LIKE_ORIGINAL).state(belief)[place] == 0


def said(vectoriser: Vectoriser, belief: MultiWOZBelief, *names: str) -> list[str]:
    numbers = [SYSTEM_NAMES.index(name) for name in names]
    return [act.value for act in vectoriser.lexicalise(numbers, belief, RNG)]


def test_values_are_those_of_the_matching_rows(database):
    vectoriser = Vectoriser(database, RIGHT)
    belief = MultiWOZBelief({"hotel": {"area": "north", "day": "friday"}}, domain="hotel")
    names = ("Hotel-Inform-Name-1", "Hotel-Inform-Name-2", "Hotel-Inform-Name-3",
             "Hotel-Inform-Choice-1", "Hotel-NoOffer-Area-1", "Hotel-Request-Stars-?",
             "Hotel-Select-none-none", "Booking-Book-Ref-1", "Booking-Book-Day-1")  # fmt: skip
    values = ["a", "b", "none", "2", "north", "?", "none", "00000000", "friday"]
    assert said(vectoriser, belief, *names) == values


def test_taxis_are_drawn_and_go_where_it_is_believed(database):
    belief = MultiWOZBelief({"taxi": {"destination": "a"}})
    names = "Taxi-Inform-Car-1", "Taxi-Inform-Dest-1", "Taxi-Inform-Depart-1"
    assert said(Vectoriser(database, RIGHT), belief, *names) == ["ford", "a", "none"]
    assert said(Vectoriser(database, LIKE_ORIGINAL), belief, *names) == ["ford", "none", "none"]


def test_what_the_database_does_not_know_is_said_to_be_unknown():
    rows = [{"name": "a", "phone": "?"}]
    database = CityDatabase({"restaurant": rows}, Taxis(("red",), ("ford",)))
    belief = MultiWOZBelief(domain="restaurant")
    names = "Restaurant-Inform-Phone-1", "Restaurant-Inform-Addr-1", "Booking-Book-Day-1"
    assert said(Vectoriser(database, RIGHT), belief, *names) == ["unknown", "unknown", "none"]
    original = Vectoriser(database, LIKE_ORIGINAL)
    assert said(original, belief, *names) == ["?", "none", "none"]


def test_a_booking_before_any_domain_has_no_values(database):
    assert said(Vectoriser(database, RIGHT), MultiWOZBelief(), "Booking-Book-Ref-1") == ["none"]


def allowed(database: CityDatabase, belief: MultiWOZBelief) -> dict[str, bool]:
    return dict(zip(SYSTEM_NAMES, Vectoriser(database, RIGHT).mask(belief).tolist()))


def test_masks_forbid_rows_beyond_the_matches_and_refusals_where_there_are_some(database):
    north = allowed(database, MultiWOZBelief({"hotel": {"area": "north"}}, domain="hotel"))
    assert [north[f"Hotel-Inform-Name-{place}"] for place in (1, 2, 3)] == [True, True, False]
    assert north["Booking-Book-Ref-1"]
    assert not north["Hotel-NoOffer-Area-1"]
    none = allowed(database, MultiWOZBelief({"hotel": {"area": "west"}}, domain="hotel"))
    for name in ("Hotel-NoOffer-Area-1", "Hotel-NoOffer-none-none", "general-bye-none-none"):
        assert none[name], name
    for name in ("Hotel-NoOffer-Stars-1", "Hotel-Inform-Name-1", "Booking-Book-Ref-1"):
        assert not none[name], name


def test_masks_allow_no_booking_before_a_domain_that_takes_one(database):
    assert not allowed(database, MultiWOZBelief())["Booking-Book-Ref-1"]
    assert not allowed(database, MultiWOZBelief(domain="attraction"))["Booking-Book-Ref-1"]


def test_every_allowed_act_about_a_row_has_a_row(database):
    for area in ("north", "south", "west", ""):
        belief = MultiWOZBelief({"hotel": {"area": area}}, domain="hotel")
        vectoriser = Vectoriser(database, RIGHT)
        for number in np.flatnonzero(vectoriser.mask(belief)):
            entry = SYSTEM_ENTRIES[number]
            (act,) = vectoriser.lexicalise([number], belief, RNG)
            if entry.domain == "Hotel" and entry.place and entry.slot in ("Name", "Area", "Stars"):
                assert act.value != NONE, entry


def test_acts_outside_the_vocabulary_are_left_out():
    acts = tuple(DialogueAct("Inform", "Hotel", "Name", str(i)) for i in range(5))
    assert len(system_numbers((*acts, DialogueAct("Inform", "Hotel", "Moon", "x")))) == 3
