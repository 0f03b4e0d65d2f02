"""The evaluator on dialogues worked by hand, rule by rule."""

from itertools import count

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialgym.tasks.multiwoz.agenda import MultiWOZUserState
from dialgym.tasks.multiwoz.data import builtin_world
from dialgym.tasks.multiwoz.dialogue import Rules, Settings
from dialgym.tasks.multiwoz.dialogue_state import MultiWOZState
from dialgym.tasks.multiwoz.evaluator import Counts, Evaluator, Record
from dialgym.tasks.multiwoz.fidelity import Fidelity
from dialgym.tasks.multiwoz.notation import read_acts
from dialgym.tasks.multiwoz.types import DomainGoal, MultiWOZBelief, MultiWOZGoal
from tests.support.city_talk import acts_of_anyone

INFORMED = DomainGoal(info={"type": "museum"}, requests=("entrance fee", "phone"))
HOTEL = DomainGoal(info={"area": "south", "stars": "3"}, book={"people": "2", "day": "friday"})
TRAIN = DomainGoal(
    info={"day": "friday", "departure": "camford", "destination": "elta", "leaveAt": "09:00"},
    book={"people": "2"},
)
TAXI = DomainGoal(info={"leaveAt": "09:00"}, requests=("car type", "phone"))


class Judged:
    """A dialogue that is only judged: what is said goes to the evaluator."""

    def __init__(self, world, fidelity: str, **domains: DomainGoal) -> None:
        self.evaluator = Evaluator(world, Fidelity.named(fidelity))
        self.goal, self.record, self.user = MultiWOZGoal(domains), Record(), MultiWOZUserState([])
        self.belief = MultiWOZBelief()

    def says(self, text: str, **answers: str) -> "Judged":
        """The system says something; the user takes answers, by slot, in the first domain."""
        self.evaluator.system(self.record, read_acts(text), self.belief)
        domain = next(iter(self.goal.domains))
        self.user.answers |= {(domain, slot.replace("_", " ")): v for slot, v in answers.items()}
        return self

    def hears(self, text: str) -> "Judged":
        self.evaluator.user(self.record, read_acts(text))
        return self

    @property
    def counts(self) -> Counts:
        return self.evaluator.counts(self.goal, self.record)

    @property
    def metrics(self):
        return self.evaluator.metrics(self.goal, self.user, self.record)


@pytest.fixture(params=["correct", "convlab2"])
def judged(request, city):
    return lambda **domains: Judged(city, request.param, **domains)


def test_rates(judged):
    counts = judged(attraction=INFORMED).counts
    assert (counts.precision, counts.recall, counts.f1) == (0, 0, 0)
    counts = judged(attraction=INFORMED).says('Attraction-Inform(Phone="01223000009")').counts
    assert (counts.precision, counts.recall, counts.f1) == (1, 0.5, pytest.approx(2 / 3))


@pytest.mark.parametrize(
    ("texts", "counts"),
    [
        ([], (0, 0, 2)),
        *[([f'Attraction-{intent}(Phone="01223000009")'], (1, 0, 1))
          for intent in ("Inform", "Recommend", "OfferBook", "OfferBooked")],
        (['Attraction-Inform(Phone="01223000009",Area="south")'] * 2, (1, 1, 1)),
        (['Attraction-Inform(Type="museum",Area="south")'], (0, 1, 2)),  # a constraint is no extra
        (['Hotel-Inform(Stars="4")'], (0, 1, 2)),
        *[([f'Attraction-Inform(Phone="{value}")'], (0, 0, 2))
          for value in ("", "dontcare", "not mentioned")],
    ],
)  # fmt: skip
def test_hits_extras_and_misses(judged, texts, counts):
    found = judged(attraction=INFORMED)
    for text in texts:
        found.says(text)
    assert found.counts == counts
    assert not found.metrics.success


@pytest.mark.parametrize("intent", ["Select", "NoOffer", "Book"])
def test_intents_that_do_not(judged, intent):
    text = f'Attraction-{intent}(Phone="01223000009")'
    assert judged(attraction=INFORMED).says(text).counts.hits == 0


@pytest.mark.parametrize(
    ("said", "correct", "original"),
    [
        ('Name="ely museum",Addr="1 road"', (0, 2, 2), (0, 0, 2)),
        ('Phone="99999999999",Fee="nothing at all"', (0, 2, 2), (2, 0, 0)),
        ('Fee="unknown",Phone="unknown"', (1, 1, 1), None),
    ],
    ids=["a name is extra", "a form is enough", "unknown where the database does not know"],
)
def test_counts_that_differ_in_the_original(city, said, correct, original):
    for fidelity, counts in (("correct", correct), ("convlab2", original)):
        found = Judged(city, fidelity, attraction=INFORMED).says(f"Attraction-Inform({said})")
        assert counts is None or found.counts == counts


FORMS = {
    "Hotel": {"Area": ("south", "there"), "Internet": ("yes", "maybe"), "Stars": ("4", "four"),
              "Price": ("cheap", "dear"), "Post": ("cb11aa", "xx11aa"),
              "Phone": ("01223000009", "999")},
    "Train": {"Arrive": ("09:20", "9.20"), "Leave": ("08:50", "soon"), "Day": ("monday", "today"),
              "Time": ("30 minutes", "an hour"), "Ticket": ("5.00 pounds", "5"),
              "Id": ("TR0001", "R1")},
}  # fmt: skip
CASES = [(d, s, *values) for d, slots in FORMS.items() for s, values in slots.items()]


@pytest.mark.parametrize(("domain", "slot", "right", "wrong"), CASES)
def test_forms(judged, domain, slot, right, wrong):
    """A value in a wrong form counts against precision each time; a right one is told."""
    found = judged(attraction=INFORMED)
    found.says(f'{domain}-Inform({slot}="{wrong}")').says(f'{domain}-Inform({slot}="{wrong}")')
    assert found.record.malformed == 2
    assert not found.record.informed
    assert found.counts == (0, 2, 2)
    told = judged(attraction=INFORMED).says(f'{domain}-Inform({slot}="{right}")')
    assert told.record.informed


def test_no_requests_no_rates(judged):
    counts = judged(hotel=HOTEL).says('Hotel-Inform(Phone="01223000009")').counts
    assert (counts.precision, counts.recall, counts.f1) == (None, None, None)


# ---------------------------------------------------------------------- bookings


def booked(judged, row: int, goal: DomainGoal = HOTEL, **belief: str):
    found = judged(hotel=goal)
    found.belief.constraints["hotel"] = belief
    return found.hears("Hotel-Inform()").says(f'Booking-Book(Ref="{row:08d}")')


def test_book_rate(judged):
    """The share of constraints that the row behind the reference meets."""
    assert judged(hotel=HOTEL).metrics.book_rate == 0
    assert booked(judged, 1).metrics.book_rate == 1
    assert booked(judged, 0).metrics.book_rate == 0
    half = DomainGoal(info={"area": "centre", "stars": "3"}, book={"people": "2"})
    assert booked(judged, 0, half).metrics.book_rate == 0.5
    assert judged(attraction=INFORMED).metrics.book_rate is None


def test_constraints_are_met_as_in_the_database(city):
    """The original compares letters, and does not judge a booking without constraints."""
    info = {"area": "South", "stars": "dontcare"}
    for goal, correct, original in [
        (DomainGoal(info=info, book={"people": "2"}), (0.0, 1.0), (0.0, 0.0)),
        (DomainGoal(book={"people": "2"}), (0.0, 1.0), (None, None)),
    ]:
        for fidelity, rates in (("correct", correct), ("convlab2", original)):
            found = Judged(city, fidelity, hotel=goal)
            before = found.metrics.book_rate
            found.hears("Hotel-Inform()").says('Booking-Book(Ref="00000001")')
            assert (before, found.metrics.book_rate) == rates
            assert found.metrics.success == (rates[1] == 1)


def test_people_and_day_are_for_the_strict(judged):
    loose = booked(judged, 1, people="2", day="monday").metrics
    assert (loose.book_rate, loose.strict_book_rate) == (1, 0.5)
    assert (loose.success, loose.strict_success) == (True, False)
    strict = booked(judged, 1, people="2", day="friday").metrics
    assert (strict.strict_book_rate, strict.strict_success) == (1, True)


BOOK = 'Booking-Book(Ref="00000001")'


@pytest.mark.parametrize(
    ("domain", "goal", "texts", "rows"),
    [
        *[("hotel", HOTEL, ["U:Hotel-Inform()", f'Booking-Book(Ref="{reference}")'], {})
          for reference in ("1", "0000001x", "99999999", "000000001", "٠٠٠٠٠٠٠١")],
        ("hotel", HOTEL, ["U:Hotel-Inform()", 'Booking-Book(Ref="00000000")', BOOK], {"hotel": 0}),
        ("hotel", HOTEL, [BOOK], {}),  # no domain has been named
        ("hotel", HOTEL, ["U:Attraction-Inform()", BOOK], {}),
        ("hotel", HOTEL, ["U:Train-Inform()", f'Hotel-Inform(Stars="3") {BOOK}'], {"hotel": 1}),
        ("train", TRAIN, ['Train-Inform(Ref="00000017")'], {"train": 17}),
        ("train", TRAIN, ['Train-OfferBooked(Ref="00000017")'], {"train": 17}),
    ],
)  # fmt: skip
def test_what_is_booked(judged, domain, goal, texts, rows):
    """The first valid reference, in the domain named last by either party (``U:`` for the user)."""
    found = judged(**{domain: goal})
    for text in texts:
        found.hears(text[2:]) if text.startswith("U:") else found.says(text)
    assert found.record.booked == rows


def test_times_of_trains_are_limits(judged):
    """Of a Friday, train 17 leaves at 12:50 and 16 at 8:50; its ends count only for the match."""
    assert judged(train=TRAIN).says('Train-OfferBooked(Ref="00000017")').metrics.book_rate == 1
    early = judged(train=TRAIN).says('Train-OfferBooked(Ref="00000016")').metrics
    assert (early.book_rate, early.match) == (0.5, 0)
    arrives = DomainGoal(info={"arriveBy": "10:00", "day": "friday"}, book={"people": "1"})
    assert judged(train=arrives).says('Train-Inform(Ref="00000016")').metrics.book_rate == 1
    assert judged(train=arrives).says('Train-Inform(Ref="00000017")').metrics.book_rate == 0.5


def test_a_taxi_is_booked_by_its_car(judged):
    found = judged(taxi=TAXI).says('Taxi-Inform(Car="red cab",Phone="11111111111")')
    assert "taxi" in found.record.booked


# ---------------------------------------------------------------------- match and success


def test_match_needs_a_row_with_the_answers(judged):
    text = 'Attraction-Inform(Fee="unknown",Phone="01223000009")'
    found = judged(attraction=INFORMED)
    assert found.metrics.match == 0
    found.says(text, phone="01223000009", entrance_fee="unknown")
    assert (found.metrics.match, found.metrics.success) == (1, True)
    found.user.answers["attraction", "phone"] = "77777777777"
    assert (found.metrics.match, found.metrics.success) == (0, False)


def test_similar_answers_are_enough_for_the_original(city):
    goal = DomainGoal(info={"day": "friday"}, requests=("trainID",))
    for fidelity, match in (("convlab2", 1), ("correct", 0)):
        found = Judged(city, fidelity, train=goal)
        assert found.says('Train-Inform(Id="TR0001")', trainID="TR0009").metrics.match == match


def test_match_needs_the_booked_row(judged):
    right, wrong = booked(judged, 1).metrics, booked(judged, 0).metrics
    assert (right.match, right.success) == (1, True)
    assert (wrong.match, wrong.success) == (0, False)


def test_match_is_the_share_of_domains(judged):
    found = judged(hotel=HOTEL, attraction=INFORMED)
    assert found.metrics.match == 0.5


def test_success_needs_something_wanted(judged):
    assert not judged(attraction=DomainGoal(info={"type": "museum"})).metrics.success


def test_success_of_a_domain_asks_for_no_match(judged):
    found = judged(attraction=INFORMED)
    done = lambda: found.evaluator.domain_success(found.goal, found.record, "attraction")  # noqa: E731
    assert not done()
    found.says('Attraction-Inform(Phone="01223000009",Fee="free")')
    assert done()
    assert not found.metrics.success
    assert not found.evaluator.domain_success(found.goal, found.record, "hotel")


def test_success_by_domain(judged):
    found = judged(attraction=INFORMED, hotel=HOTEL)
    successes = lambda: found.evaluator.successes(found.goal, found.user, found.record)  # noqa: E731
    assert successes() == {"attraction": False, "hotel": False}
    text = 'Attraction-Inform(Phone="01223000009",Fee="unknown")'
    found.says(text, phone="01223000009", entrance_fee="unknown")
    assert successes() == {"attraction": True, "hotel": False}
    assert not found.metrics.success
    unasked = judged(attraction=DomainGoal(info={"type": "museum"}))
    assert unasked.evaluator.successes(unasked.goal, unasked.user, unasked.record) == {
        "attraction": True
    }


def test_what_keeps_a_domain_from_success(judged):
    def failures(found):
        return found.evaluator.failures(found.goal, found.user, found.record)

    assert failures(judged(hotel=HOTEL)) == ["hotel: not booked"]
    assert failures(booked(judged, 0)) == ["hotel: booked another"]
    assert failures(booked(judged, 1)) == []
    assert failures(judged(attraction=INFORMED)) == ["attraction: requests unanswered"]
    told = judged(attraction=INFORMED).says('Attraction-Inform(Phone="01223000009",Fee="free")')
    assert failures(told) == ["attraction: no row is as it was told"]
    assert failures(judged(attraction=DomainGoal(info={"type": "museum"}))) == [
        "nothing was wanted"
    ]
    both = judged(attraction=INFORMED, hotel=HOTEL)
    both.says('Attraction-Inform(Phone="01223000009",Area="south") Hotel-Inform(Phone="1")')
    own = [
        both.evaluator.of_domain(both.goal, both.user, both.record, domain).counts
        for domain in ("attraction", "hotel")
    ]
    assert own[0] == (1, 1, 1)
    assert own[1][0] == own[1][2] == 0


def test_complete_is_what_the_user_believes(judged):
    found = judged(attraction=INFORMED)
    found.user.answers |= {("attraction", "phone"): "1", ("attraction", "entrance fee"): "2"}
    assert found.metrics.complete
    assert not found.metrics.success


# ---------------------------------------------------------------------- properties

RULES = [Rules(builtin_world(), Settings(fidelity=name)) for name in ("correct", "convlab2")]


@given(
    st.sampled_from(RULES), st.integers(0, 1000), st.lists(acts_of_anyone(), max_size=6), st.data()
)
def test_success_implies_match_and_recall(rules, seed, strange, data):
    """Whatever the system mixes into its dialogue."""
    rng = np.random.default_rng(seed)
    state = rules.begin(rules.world.draw_goal(rng), rng)
    for turn in count():
        rules.user_turn(state, rules.user.acts(state, rng), rng)
        metrics = rules.metrics(state)
        counts = metrics.counts
        successes = rules.successes(state)
        assert list(successes) == list(state.goal.domains)
        wanted = any(d.requests or d.book for d in state.goal.domains.values())
        assert not metrics.success or all(successes.values())
        assert not wanted or metrics.success == all(successes.values())
        assert not metrics.success or metrics.match == 1
        assert not metrics.success or counts.recall in (1, None)
        assert not metrics.success or metrics.book_rate in (1, None)
        assert metrics.success or not metrics.strict_success
        assert 0 <= metrics.match <= 1
        if state.ended:
            break
        said = rules.system.acts(state.belief, rng)
        if turn < len(strange) and data.draw(st.booleans()):
            said = strange[turn]
        rules.system_turn(state, said, rng)


@given(st.sampled_from(RULES), st.integers(0, 1000))
def test_records_grow(rules, seed):
    """Answers and bookings stay; a copy does not change with its original."""
    rng = np.random.default_rng(seed)
    state: MultiWOZState = rules.begin(rules.world.draw_goal(rng), rng)
    before = state.copy()
    while not state.ended:
        rules.user_turn(state, rules.user.acts(state, rng), rng)
        rules.system_turn(state, rules.system.acts(state.belief, rng), rng)
        assert before.record.informed <= state.record.informed
        assert before.record.booked.items() <= state.record.booked.items()
        before = state.copy()
