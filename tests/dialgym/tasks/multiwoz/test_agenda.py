"""The agenda user: what it says of itself, and how it takes what the system says."""

import numpy as np
import pytest

from dialgym.tasks.multiwoz.agenda import BYE, AgendaItem, complete
from dialgym.tasks.multiwoz.dialogue import Rules
from dialgym.tasks.multiwoz.notation import print_acts, read_acts
from dialgym.tasks.multiwoz.types import DomainGoal, MultiWOZGoal
from dialgym.tasks.multiwoz.user import BEHAVIOURS, MultiWOZUser, MultiWOZUserBehaviour

HOTEL = DomainGoal(
    info={"area": "south", "stars": "3"},
    book={"people": "2", "day": "friday", "stay": "3"},
    requests=("phone", "address"),
)
PARK = DomainGoal(info={"type": "park"}, requests=("entrance fee",))
TRAIN = DomainGoal(
    info={"day": "friday", "departure": "camford", "destination": "elta", "leaveAt": "09:00"},
    requests=("trainID",),
    book={"people": "2"},
)
TAXI = DomainGoal(info={"leaveAt": "09:00"}, requests=("phone",))
TRIED = DomainGoal(
    info={"food": "thai", "pricerange": "cheap"},
    fail_info={"food": "thai", "pricerange": "moderate"},
    requests=("phone",),
)
TWO_TRIES = DomainGoal(info={"area": "south"}, book={"people": "2"}, fail_book={"people": "9"})
BOOKED = 'Booking-Book(Ref="00000001")'
LEAVES = "general-bye()"

ANSWERS = {
    "what could not be met is asked for first": (
        {"restaurant": TRIED}, "correct",
        [(None, 'Restaurant-Inform() Restaurant-Inform(Food="thai",Price="moderate")'),
         ('Restaurant-NoOffer(Food="thai")', 'Restaurant-Inform(Price="cheap")'),
         ('Restaurant-Inform(Name="tall table")', "Restaurant-Request(Phone)")]),
    "none at all and the user leaves": (
        {"hotel": HOTEL}, "correct", [(None, None), ("Hotel-NoOffer()", LEAVES)]),
    "no choice is no offer": (
        {"hotel": HOTEL}, "correct", [(None, None), ('Hotel-Inform(Choice="0")', LEAVES)]),
    "in words too": (
        {"hotel": HOTEL}, "correct", [(None, None), ('Hotel-Inform(Choice=" Zero ")', LEAVES)]),
    "no room and the user leaves": (
        {"hotel": HOTEL}, "correct", [(None, None), ("Booking-NoBook()", LEAVES)]),
    "another booking is tried": (
        {"hotel": TWO_TRIES}, "correct",
        [(None, None), ('Hotel-Inform(Name="blue inn")', 'Hotel-Inform(People="9")'),
         ("Booking-NoBook()", 'Hotel-Inform(People="2")'), (BOOKED, LEAVES)]),
    "from constraints to requests to booking": (
        {"hotel": HOTEL}, "correct",
        [(None, None), ('Hotel-Inform(Name="blue inn")', "Hotel-Request(Phone,Addr)"),
         ('Hotel-Inform(Phone="01223000009")', "Hotel-Request(Addr)"),
         ('Hotel-Inform(Addr="1 road")', 'Hotel-Inform(People="2",Day="friday",Stay="3")'),
         (BOOKED, LEAVES)]),
    "what is not in the goal does not matter": (
        {"hotel": HOTEL}, "correct",
        [(None, None), ("Hotel-Request(Price)", 'Hotel-Inform(Price="dontcare")'),
         ("Hotel-Request(Stars)", 'Hotel-Inform(Stars="3")')]),
    "what is wrong is corrected": (
        {"hotel": HOTEL}, "correct",
        [(None, None), ('Hotel-Recommend(Area="north")', 'Hotel-Inform(Area="south")')]),
    "what is right is not": (
        {"hotel": HOTEL}, "correct",
        [(None, None), ('Hotel-Recommend(Area="south",Stars="3")', "Hotel-Request(Phone,Addr)")]),
    "who does not book says so": (
        {"attraction": PARK}, "correct",
        [(None, None), ("Booking-Request(Day)", 'Attraction-Inform(NotBook="none")')]),
    "any of several will do": (
        {"hotel": HOTEL}, "correct",
        [(None, None), ('Hotel-Inform(Choice="2")', 'Hotel-Inform(Choice="any")')]),
    "unless one is named": (
        {"hotel": HOTEL}, "correct",
        [(None, None),
         ('Hotel-Inform(Choice="2") Hotel-Recommend(Name="blue inn")',
          "Hotel-Request(Phone,Addr)")]),
    "of two values it selects its own": (
        {"hotel": HOTEL}, "correct",
        [(None, None), ('Hotel-Select(Stars="4",Stars="2")', 'Hotel-Inform(Stars="3")')]),
    "or any where it has none": (
        {"hotel": HOTEL}, "correct",
        [(None, None), ('Hotel-Select(Price="cheap")', 'Hotel-Inform(Price="cheap")')]),
    "what cannot be said is left out": (
        {"attraction": PARK}, "correct",
        [(None, None), ("Attraction-Request(Price)", "Attraction-Request(Fee)")]),
    "in the original it costs the requests their turn": (
        {"attraction": PARK}, "convlab2", [(None, None), ("Attraction-Request(Price)", LEAVES)]),
}  # fmt: skip
"""By rule: the goal, the fidelity, and what the user says to utterances of the system."""


class Talk:
    """A dialogue in which the user speaks from its agenda, and the system says what it is told."""

    def __init__(
        self, rules: Rules, user: str | MultiWOZUserBehaviour = "agenda", seed=0, **goal
    ) -> None:
        self.rules, self.rng = rules, np.random.default_rng(seed)
        self.state = rules.begin(MultiWOZGoal(goal), self.rng)
        self.speaker = MultiWOZUser(rules.agenda, user)

    def user(self) -> str:
        """The next utterance of the user."""
        acts = self.speaker.acts(self.state, self.rng)
        self.rules.user_turn(self.state, acts, self.rng)
        return print_acts(acts)

    def answer(self, text: str) -> str:
        """The user's answer to an utterance of the system."""
        self.rules.system_turn(self.state, read_acts(text), self.rng)
        return self.user()


def words(text: str) -> set:
    """The acts of an utterance, in whatever order."""
    return set(read_acts(text))


def asks(*texts: str) -> set:
    return {act for text in texts for act in read_acts(text)}


# ---------------------------------------------------------------------- the stack


def test_agenda_of_a_goal(rules):
    """Domains in their order from the top, each announced; goodbye at the bottom."""
    stack = Talk(rules["correct"], hotel=HOTEL, attraction=PARK).state.user.stack
    assert stack[0] == BYE
    assert stack[1:3] == [
        AgendaItem("attraction", "inform", "type", "park"),
        AgendaItem("attraction", "inform", "none", "none"),
    ]
    assert {item[2:] for item in stack[3:5]} == {("area", "south"), ("stars", "3")}
    assert stack[5] == AgendaItem("hotel", "inform", "none", "none")


def test_constraints_come_in_any_order(rules):
    orders = {
        tuple(item.slot for item in Talk(rules["correct"], seed=seed, train=TRAIN).state.user.stack)
        for seed in range(200)
    }
    assert len(orders) == 24


@pytest.mark.parametrize("rule", ANSWERS)
def test_what_it_says(rules, rule):
    goal, fidelity, answers = ANSWERS[rule]
    talk = Talk(rules[fidelity], **goal)
    for text, expected in answers:
        said = talk.user() if text is None else talk.answer(text)
        assert expected is None or sorted(read_acts(said)) == sorted(read_acts(expected))
        assert talk.state.ended == (said == LEAVES)


def test_four_acts_at_a_time(rules):
    talk = Talk(rules["correct"], train=TRAIN)
    assert len(read_acts(talk.user())) == 4
    assert len(talk.state.user.stack) == 2


def test_a_goal_is_complete_once_another_booking_was_tried(rules):
    talk = Talk(rules["correct"], hotel=TWO_TRIES)
    talk.user()
    for text in ('Hotel-Inform(Name="blue inn")', "Booking-NoBook()", BOOKED):
        talk.answer(text)
    assert complete(talk.state.user, talk.state.goal, talk.rules.fidelity)


# ---------------------------------------------------------------------- answers and bookings


def test_answers_are_taken_once_all_is_said(rules):
    talk = Talk(rules["correct"], train=TRAIN)
    talk.user()
    for taken in ({}, {("train", "trainID"): "TR0001"}):
        talk.answer('Train-Inform(Id="TR0001")')
        assert talk.state.user.answers == taken


@pytest.mark.parametrize("value", ["?", "none", "dontcare", ""])
def test_what_tells_nothing_is_no_answer(rules, value):
    """The original takes it for one."""
    for fidelity in ("correct", "convlab2"):
        talk = Talk(rules[fidelity], attraction=PARK)
        talk.user()
        talk.answer('Attraction-Inform(Name="old park")')
        again = talk.answer(f'Attraction-Inform(Fee="{value}")')
        assert again == ("Attraction-Request(Fee)" if fidelity == "correct" else "general-bye()")


def test_later_and_earlier_trains_are_no_contradictions(rules):
    talk = Talk(rules["correct"], train=TRAIN)
    talk.user()
    assert "Leave" not in talk.answer('Train-OfferBook(Leave="09:30")')
    assert 'Leave="09:00"' in talk.answer('Train-OfferBook(Leave="08:30")')


def test_a_wrong_booking_is_not_booked(rules):
    talk = Talk(rules["correct"], hotel=DomainGoal(info={"area": "south"}, book={"people": "2"}))
    talk.user()
    talk.answer('Hotel-Inform(Name="blue inn")')
    assert talk.answer('Booking-Book(Ref="00000001",People="3")') == 'Hotel-Inform(People="2")'
    assert not talk.state.user.booked


@pytest.mark.parametrize(
    ("before", "ends"),
    [
        ((), ("dontcare", "dontcare")),
        (("hotel",), ("the hotel", "dontcare")),
        (("attraction", "hotel"), ("the hotel", "the attraction")),
        (("train", "hotel"), ("the hotel", "dontcare")),
    ],
)
def test_ends_of_a_ride(rules, before, ends):
    """To the place that was talked about last, from the one before it."""
    goals = {"hotel": HOTEL, "attraction": PARK, "train": TRAIN}
    talk = Talk(rules["correct"], **{domain: goals[domain] for domain in before}, taxi=TAXI)
    assert ride(talk) == {"destination": ends[0], "departure": ends[1]}


def test_a_ride_to_a_place_by_its_name(rules):
    named = DomainGoal(info={"name": "blue inn"}, requests=("phone",))
    assert ride(Talk(rules["correct"], hotel=named, taxi=TAXI))["destination"] == "blue inn"


def ride(talk: Talk) -> dict[str, str]:
    """The ends of the ride that go on the agenda when they are asked for."""
    talk.user()
    talk.rules.system_turn(talk.state, read_acts("Taxi-Request(Dest,Depart)"), talk.rng)
    items = [item for item in talk.state.user.stack if item.domain == "taxi"]
    return {item.slot: item.value for item in items if item.slot in ("destination", "departure")}


@pytest.mark.parametrize(
    ("slot", "value", "open_again"),
    [
        ("Price", "none", {"correct": False, "convlab2": True}),
        ("Price", "cheap", {"correct": False, "convlab2": False}),
        ("Parking", "no", {"correct": False, "convlab2": True}),
        ("Parking", "yes", {"correct": False, "convlab2": False}),
    ],
)
@pytest.mark.parametrize("fidelity", ["correct", "convlab2"])
def test_no_value_among_choices_reopens_a_request_in_the_original(
    rules, fidelity, slot, value, open_again
):
    """An answer that was heard before is lost; by default it stays, and "no" is one."""
    goal = DomainGoal(info={"area": "south"}, requests=("pricerange", "parking", "phone"))
    talk = Talk(rules[fidelity], hotel=goal)
    talk.user()
    talk.answer('Hotel-Inform(Name="blue inn")')
    talk.answer('Hotel-Inform(Price="cheap",Parking="yes")')
    assert talk.answer(f'Hotel-Select({slot}="{value}")') == f'Hotel-Inform({slot}="{value}")'
    asked = talk.answer("general-reqmore()")
    assert (slot in {act.slot for act in read_acts(asked)}) == open_again[fidelity]


def test_no_value_among_choices_takes_a_request_off_the_agenda_in_the_original(rules):
    goal = DomainGoal(info={"area": "south"}, requests=("pricerange", "phone"))
    for fidelity, open_slots in (("correct", {"pricerange", "phone"}), ("convlab2", {"phone"})):
        talk = Talk(rules[fidelity], hotel=goal)
        talk.user()
        talk.rules.system_turn(talk.state, read_acts('Hotel-Inform(Name="blue inn")'), talk.rng)
        talk.rules.system_turn(talk.state, read_acts('Hotel-Select(Price="none")'), talk.rng)
        waiting = {i.slot for i in talk.state.user.stack if i.intent == "request"}
        assert waiting == open_slots


@pytest.mark.parametrize(
    ("domain", "text"),
    [
        ("police", 'Police-Inform(Name="main station")'),
        ("hotel", 'Hotel-Inform(People="9")'),
        ("restaurant", 'Restaurant-Inform(Time="11:00")'),
    ],
)
def test_what_the_user_of_the_original_does_not_hear(rules, domain, text):
    """Nor does it take the talk to be about that domain."""
    goal = {
        "train": TRAIN,
        "police": DomainGoal(requests=("phone",)),
        "hotel": HOTEL,
        "restaurant": DomainGoal(info={"food": "thai"}, book={"people": "2", "time": "12:00"}),
    }
    for fidelity, about in (("correct", domain), ("convlab2", "train")):
        talk = Talk(rules[fidelity], train=TRAIN, **{domain: goal[domain]})
        talk.user()
        talk.rules.system_turn(talk.state, read_acts(text), talk.rng)
        assert talk.state.user.domain == about


# ---------------------------------------------------------------------- faults of the original


def test_the_day_is_said_before_details_are_asked_for(rules):
    """In the original it counts as part of a booking, so requests may come first."""
    early = {"correct": 0, "convlab2": 0}
    for fidelity in early:
        for seed in range(60):
            talk = Talk(rules[fidelity], seed=seed, train=TRAIN)
            talk.user()
            early[fidelity] += "Request" in talk.answer("Train-Request(Day)")
    assert early["correct"] == 0
    assert early["convlab2"] > 5


def test_values_said_again(rules):
    """Under the fault one in three repeated values is a phrase."""
    goal = {"attraction": DomainGoal(info={"area": "south"}, requests=("phone",)), "hotel": HOTEL}
    found = {}
    for fidelity in ("correct", "convlab2"):
        stacks = [Talk(rules[fidelity], seed=s, **goal).state.user.stack for s in range(400)]
        values = [item.value for stack in stacks for item in stack]
        found[fidelity] = values.count("same area as the attraction") / 400
    assert found["correct"] == 0
    assert found["convlab2"] == pytest.approx(0.3, abs=0.07)


def test_booking_slots_of_other_domains_hold_nothing_back_in_the_original(rules):
    """There they are no constraints, so an answer is heard at once."""
    talk = Talk(rules["convlab2"], attraction=PARK)
    talk.user()
    talk.answer('Booking-Request(Stay) Attraction-Inform(Fee="free")')
    assert talk.state.user.answers == {("attraction", "entrance fee"): "free"}


@pytest.mark.parametrize("text", ['Attraction-Select(Price="none")', "Hotel-Request(Ref)"])
def test_prices_of_attractions_and_references_are_never_told_by_the_user(rules, text):
    for fidelity in rules:
        talk = Talk(rules[fidelity], attraction=PARK, hotel=HOTEL)
        talk.user()
        assert not {"Price", "Ref"} & {act.slot for act in read_acts(talk.answer(text))}


# ---------------------------------------------------------------------- who speaks


def test_others_may_speak_for_the_user(rules):
    """An utterance leaves the agenda, in whatever order; all else stays."""
    talk = Talk(rules["correct"], hotel=HOTEL)
    talk.rules.user_turn(talk.state, read_acts('Hotel-Inform(Stars="3",Price="cheap")'), talk.rng)
    assert {item.slot for item in talk.state.user.stack} == {"none", "area"}
    assert 'Area="south"' in talk.answer("general-reqmore()")


def test_the_last_of_several_domains_is_talked_about(rules):
    """Bookings are about it."""
    for first, last in (("Hotel", "Train"), ("Train", "Hotel")):
        talk = Talk(rules["correct"], hotel=HOTEL, train=TRAIN)
        text = f'{first}-Inform(Day="friday") {last}-Inform(People="2") general-thank()'
        talk.rules.user_turn(talk.state, read_acts(text), talk.rng)
        assert talk.state.user.domain == last.lower()


def test_terse_says_one_thing(rules):
    talk = Talk(rules["correct"], "terse", hotel=HOTEL)
    first = read_acts(talk.user())
    assert first[0] == read_acts("Hotel-Inform()")[0]
    assert len(first) == 2
    for text in ('Hotel-Inform(Choice="2")', "general-reqmore()", 'Hotel-Inform(Phone="1")',
                 'Hotel-Inform(Addr="1 road")', "Booking-Request(Day,Stay)"):  # fmt: skip
        assert len(read_acts(talk.answer(text))) == 1
    police = DomainGoal(requests=("phone",))  # announced where nothing is said of it
    assert Talk(rules["correct"], "terse", police=police).user() == "Police-Inform()"


def test_verbose_says_all_and_asks_at_once(rules):
    said = Talk(rules["correct"], "verbose", train=TRAIN).user()
    assert words(said) >= asks("Train-Request(Id)", 'Train-Inform(Day="friday",Leave="09:00")')
    assert len(read_acts(said)) == 6


def test_verbose_asks_when_there_can_be_answers(rules):
    talk = Talk(rules["correct"], "verbose", restaurant=TRIED)
    assert "Request" not in talk.user()
    assert "Request(Phone)" in talk.answer("Restaurant-NoOffer()")


def test_unfriendly_says_less_and_leaves_sooner(rules):
    usual = Talk(rules["correct"], train=TRAIN).user()
    lengths = [len(read_acts(Talk(rules["correct"], "unfriendly", seed=s, train=TRAIN).user()))
               for s in range(100)]  # fmt: skip
    assert 1.5 < np.mean(lengths) < 2.3 < len(read_acts(usual))
    talk = Talk(rules["correct"], "unfriendly", hotel=HOTEL)
    talk.user()
    said = [talk.answer("general-reqmore()") for _ in range(BEHAVIOURS["unfriendly"].patience)]
    assert said[-1] == "general-bye()" not in said[:-1]


def test_behaviour_of_your_own(rules):
    said = Talk(rules["correct"], MultiWOZUserBehaviour(initiative=2), train=TRAIN).user()
    assert len(read_acts(said)) == 2
    with pytest.raises(ValueError, match="quiet"):
        MultiWOZUser(rules["correct"].agenda, "quiet")
