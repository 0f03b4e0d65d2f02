"""Sets of rows as ints."""

from hypothesis import given
from hypothesis import strategies as st

from dialgym.domains.bitsets import first, indices, value_sets


@given(st.sets(st.integers(0, 300)))
def test_the_members_of_a_set(members):
    found = sum(1 << member for member in members)
    assert indices(found) == sorted(members)
    assert not members or first(found) == min(members)


def test_the_rows_of_each_value():
    rows = [{"area": "north", "food": "thai"}, {"area": "south"}, {"area": "north"}]
    assert value_sets(rows) == {"area": {"north": 0b101, "south": 0b010}, "food": {"thai": 0b001}}
