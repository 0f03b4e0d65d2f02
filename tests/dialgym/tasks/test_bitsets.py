"""Sets of rows as ints."""

from hypothesis import given
from hypothesis import strategies as st

from dialgym.tasks.bitsets import ColumnSets, first, indices, value_sets


@given(st.sets(st.integers(0, 300)))
def test_the_members_of_a_set(members):
    found = sum(1 << member for member in members)
    assert indices(found) == sorted(members)
    assert not members or first(found) == min(members)


def test_the_rows_of_each_value():
    rows = [{"area": "north", "food": "thai"}, {"area": "south"}, {"area": "north"}]
    assert value_sets(rows) == {"area": {"north": 0b101, "south": 0b010}, "food": {"thai": 0b001}}


def test_the_members_of_a_large_set():
    members = list(range(0, 20_000, 7))
    assert indices(sum(1 << member for member in members)) == members


@given(st.lists(st.sampled_from(["a", "b", "c", None]), max_size=60))
def test_the_rows_of_a_column(cells):
    column = ColumnSets(cells)
    for value in "abcd":
        assert indices(column[value]) == [i for i, cell in enumerate(cells) if cell == value]
