"""Bit sets of rows against slow loops over them."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialgym.tasks.slot_filling.domain.database import MISSING
from tests.support.slot_domains import constraints, database_of, databases


def slow_matches(database, wanted):
    return [
        place
        for place, row in enumerate(database.rows)
        if all(value in ("dontcare", row[slot]) for slot, value in wanted.items())
    ]


def slow_discriminable(database, rows, dontcare):
    asked = [slot for slot in ("food", "area", "parking") if slot not in dontcare]
    return any(len({database.rows[row][slot] for row in rows}) > 1 for slot in asked)


@given(databases(), constraints())
def test_matches_are_the_rows_that_meet_all_constraints(database, wanted):
    found = database.matches(wanted)
    assert found.dtype == np.int64
    assert found.tolist() == slow_matches(database, wanted)


@given(databases(), constraints(), st.sets(st.sampled_from(["food", "area", "parking"])))
def test_discriminable_rows_differ_on_a_slot_worth_asking(database, wanted, dontcare):
    rows = slow_matches(database, wanted)
    expected = slow_discriminable(database, rows, dontcare)
    assert database.discriminable(database.match_bits(wanted), dontcare) == expected


def test_price_and_name_tell_no_rows_apart():
    database = database_of({"price": "ten"}, {"price": "twenty"})
    assert not database.discriminable(database.everything)


def test_a_missing_value_tells_rows_apart_and_meets_no_constraint():
    database = database_of({"food": MISSING}, {"food": "thai"})
    assert database.discriminable(database.everything)
    assert database.matches({"food": "thai"}).tolist() == [1]
    assert database.codes[:, 0].tolist() == [-1, 0]


def test_a_value_that_no_row_has():
    database = database_of({}, {})
    assert database.matches({"food": "greek"}).tolist() == []
    assert database.matches({"name": "none"}).tolist() == []


def test_an_unknown_slot():
    with pytest.raises(ValueError, match=r"unknown slot 'foood' in the database\. Did you mean"):
        database_of({}).matches({"foood": "thai"})


def test_entropy():
    even = database_of({"food": "thai"}, {"food": "greek"}, {"food": "cafe"})
    assert even.entropy("food") == pytest.approx(np.log(3))
    assert even.entropy("area") == 0


def test_rows_cannot_be_changed():
    with pytest.raises(TypeError):
        database_of({}).rows[0]["food"] = "greek"


def test_a_pickle_is_the_same_database():
    database = database_of({"food": "greek"}, {})
    copy = pickle.loads(pickle.dumps(database))
    assert (copy.rows, copy.ontology) == (database.rows, database.ontology)
    assert copy.matches({"food": "greek"}).tolist() == [0]
