"""Dialogue acts and their text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialgym.language.acts import (
    Act,
    SlotValue,
    act,
    parse_act,
    parse_acts,
    print_act,
    print_hypotheses,
)

SLOTS = st.from_regex(r"[a-z_][a-z0-9_.-]{0,8}", fullmatch=True)
ITEMS = st.one_of(
    st.builds(lambda slot: SlotValue(slot), SLOTS),
    st.builds(SlotValue, st.one_of(st.just(""), SLOTS), st.text(), st.booleans()),
)
ACTS = st.builds(Act, SLOTS.filter(lambda s: "." not in s), st.lists(ITEMS).map(tuple))


@given(ACTS)
def test_a_printed_act_is_read_as_it_was(said):
    assert parse_act(print_act(said)) == said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("hello()", Act("hello")),
        ("request(phone, addr)", act("request", ("phone", None), ("addr", None))),
        ('inform(food="thai",area=north)', act("inform", food="thai", area="north")),
        (' inform ( food = asian oriental , x="a,b)" ) ', act("inform", food="asian oriental", x="a,b)")),  # noqa: E501
        ('inform(="dontcare")', act("inform", ("", "dontcare"))),
        ('inform(name!="a \\"b\\"")', Act("inform", (SlotValue("name", 'a "b"', True),))),
    ],
)  # fmt: skip
def test_acts_are_read(text, said):
    assert parse_act(text) == said


@pytest.mark.parametrize(
    "text",
    ["", "thai food", "inform", "inform(", "inform(food=)", "inform(,)", "inform(a,)", "(a)",
     'inform(food="thai)', "inform(food==thai)", 'inform("thai")', "a() b()", "a(b c)"],
)  # fmt: skip
def test_what_is_no_act_is_refused_with_an_example(text):
    with pytest.raises(ValueError, match=r"expected an act such as inform\(food=.*got "):
        parse_act(text)


@given(st.text())
def test_any_text_is_an_act_or_refused(text):
    try:
        said = parse_act(text)
    except ValueError:
        return
    assert parse_act(print_act(said)) == said


def test_the_order_of_items_does_not_matter_but_what_they_say_does():
    both = act("inform", food="thai", area="north")
    assert both.same(act("inform", area="north", food="thai"))
    assert not both.same(act("confirm", food="thai", area="north"))
    assert not both.same(act("inform", food="thai"))
    assert not both.same(act("inform", food="thai", area="south"))
    assert not both.same(None)


def test_values_are_found_by_slot():
    said = Act(
        "inform", (SlotValue("name", "x", True), SlotValue("name", "y"), SlotValue("area", "north"))
    )
    assert (said.value("name"), said.values("name"), said.value("food")) == ("y", ["y"], None)
    assert said.mentions("area")
    assert not said.mentions("food")


def test_hypotheses_are_printed_with_their_probabilities():
    heard = [(act("inform", food="thai"), 0.826), (Act("null"), 0.174)]
    assert print_hypotheses(heard) == 'inform(food="thai") 0.83 | null() 0.17'


@given(st.lists(ACTS, max_size=3).map(tuple))
def test_several_printed_acts_are_read_as_they_were(said):
    assert parse_acts(" ".join(map(print_act, said))) == said


@pytest.mark.parametrize("text", ["hello", "hello() you", "a() b(", 'a(="x) b()', "a(b=()"])
def test_what_is_not_made_of_acts_is_an_error(text):
    with pytest.raises(ValueError, match="expected acts such as"):
        parse_acts(text)
