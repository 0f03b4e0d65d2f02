"""Goals drawn at once have the distribution of goals drawn by trial."""

from collections import Counter
from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dialgym.tasks.slot_filling.domain.database import EntityDatabase
from dialgym.tasks.slot_filling.domain.goals import GoalGenerator
from dialgym.tasks.slot_filling.domain.ontology import Ontology
from tests.support.slot_domains import ASKED, VALUES, database_of, databases, five_slots, row_of


def chances(generator):
    """The probability of each set of constraints, as the generator lists them."""
    found = Counter()
    for slots, values, chance in zip(generator.slots, generator.values, generator.probability):
        names = [ASKED[slot] for slot in slots]
        texts = [(*VALUES[name], "dontcare")[value] for name, value in zip(names, values)]
        found[frozenset(zip(names, texts))] += chance
    return found


def slow_chances(database, size, matches):
    """The same by going through every outcome of a trial."""
    kept = Counter()
    for slots in permutations(ASKED, size):
        outcomes = list(product(*((*VALUES[slot], "dontcare") for slot in slots)))
        for values in outcomes:
            wanted = dict(zip(slots, values))
            if matches[0] <= len(database.matches(wanted)) <= matches[1]:
                kept[frozenset(wanted.items())] += 1 / len(outcomes)
    return {goal: chance / kept.total() for goal, chance in kept.items()}


@given(databases(), st.integers(1, 3), st.sampled_from([(2, 3), (1, 1), (1, 12)]))
@settings(max_examples=60)
def test_goals_are_as_likely_as_by_trial(database, size, matches):
    expected = slow_chances(database, size, matches)
    assume(expected)
    found = chances(GoalGenerator(database, size, matches=matches))
    assert found.keys() == expected.keys()
    assert all(found[goal] == pytest.approx(expected[goal]) for goal in expected)


@given(databases(), st.integers(0, 2**32 - 1))
def test_two_or_three_rows_meet_a_goal(database, seed):
    try:
        generator = GoalGenerator(database)
    except ValueError:
        assume(False)
    goal = generator.draw(np.random.default_rng(seed))
    assert len(database.matches(goal.constraints)) in (2, 3)
    assert len(goal.constraints) == 3
    assert goal.requests[0] == "name"
    assert len(set(goal.requests)) == len(goal.requests) <= 3
    assert set(goal.requests) <= {"name", "phone", "addr"}


@pytest.fixture(scope="module")
def draws():
    foods = [{"food": food, "area": area} for food in ("thai", "greek") for area in VALUES["area"]]
    generator = GoalGenerator(database_of(*foods, *foods))
    rng = np.random.default_rng(0)
    return generator, [generator.draw(rng) for _ in range(6000)]


def test_draws_follow_the_listed_probabilities(draws):
    generator, goals = draws
    drawn = Counter(frozenset(goal.constraints.items()) for goal in goals)
    for goal, chance in chances(generator).items():
        spread = (chance * (1 - chance) / len(goals)) ** 0.5
        assert abs(drawn[goal] / len(goals) - chance) < 5 * spread


def test_all_orders_of_constraints_are_as_likely(draws):
    counts = Counter(tuple(goal.constraints) for goal in draws[1])
    assert len(counts) == 6
    assert max(counts.values()) < 1.25 * min(counts.values())


def test_requests_as_often_as_by_trial(draws):
    # One, two or three slots at 1/3 each; a further draw of `name` adds nothing. Of three slots
    # a pair has `name` in 2 of 3 cases.
    sizes = Counter(len(goal.requests) for goal in draws[1])
    for size, chance in {1: 1 / 3 + 1 / 9, 2: 2 / 9 + 2 / 9, 3: 1 / 9}.items():
        assert sizes[size] / len(draws[1]) == pytest.approx(chance, abs=0.03)


class Constant:
    """A generator whose uniform numbers are all the same."""

    def __init__(self, u):
        self.u = u

    def random(self, count):
        return np.full(count, self.u)


def test_arrangements_are_those_of_all_that_could_be_listed():
    generator = GoalGenerator(five_slots(), 5, matches=(1, 2))
    orders = list(permutations(generator.draw(Constant(0.0)).constraints))
    requests = [list(permutations(("name", "phone", "addr"), n)) for n in range(3)]
    for u in (*np.linspace(0, 1, 50, endpoint=False), np.nextafter(1, 0)):
        goal, sized = generator.draw(Constant(u)), requests[int(u * 3)]
        assert tuple(goal.constraints) == orders[int(u * len(orders))]
        drawn = sized[int(u * 3 % 1 * len(sized))]
        assert goal.requests == tuple(dict.fromkeys(("name", *drawn)))


def test_many_requests_are_not_listed():
    slots = [f"slot {i}" for i in range(40)]
    ontology = Ontology("Toy", "bar", {**VALUES, "name": ("a", "b")}, ("name", *slots), ASKED)
    rows = [row_of(0, name=name, **dict.fromkeys(slots, "x")) for name in "ab"]
    goal = GoalGenerator(EntityDatabase(rows, ontology), 3, 30).draw(Constant(0.99))
    assert len(goal.requests) in (30, 31)


def test_no_goal_that_enough_rows_meet():
    with pytest.raises(ValueError, match="goals of Toy: expected constraints that 2 to 3 rows"):
        GoalGenerator(database_of({}))
