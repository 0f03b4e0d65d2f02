"""Acts of multi-domain dialogues as text, and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialgym.tasks.multiwoz.notation import print_acts, read_acts
from dialgym.tasks.multiwoz.types import ASKED, NONE, DialogueAct

WORD = st.from_regex(r"[A-Za-z][A-Za-z0-9_]{0,8}", fullmatch=True)
VALUES = st.one_of(st.just(NONE), st.just(ASKED), st.text())
ACTS = st.lists(
    st.one_of(
        st.builds(DialogueAct, WORD, WORD, st.just(NONE), st.just(NONE)),
        st.builds(DialogueAct, WORD, WORD, WORD, VALUES),
        st.builds(
            DialogueAct,
            st.just("Inform"),
            st.just("Hotel"),
            st.sampled_from(["Area", NONE]),
            VALUES,
        ),
    ),
    max_size=6,
).map(tuple)


@given(ACTS)
def test_printed_acts_are_read_as_they_were(acts):
    assert read_acts(print_acts(acts)) == acts


@pytest.mark.parametrize(
    ("acts", "text"),
    [
        ((), ""),
        ((DialogueAct("bye", "general"),), "general-bye()"),
        (
            (
                DialogueAct("Inform", "Hotel"),
                DialogueAct("Inform", "Hotel", "Area", "north"),
                DialogueAct("Inform", "Hotel", "Stars", "0"),
                DialogueAct("Request", "Train", "Day", "?"),
            ),
            'Hotel-Inform() Hotel-Inform(Area="north",Stars="0") Train-Request(Day)',
        ),
        (
            (DialogueAct("Inform", "Hotel", "Name", "a (b) c"),) * 2,
            'Hotel-Inform(Name="a (b) c",Name="a (b) c")',
        ),
    ],
)
def test_acts_of_one_kind_share_their_brackets(acts, text):
    assert print_acts(acts) == text
    assert read_acts(text) == acts


OTHERS = ("hello", "hello()", "Hotel-()", 'Hotel-Inform(Area!="north")', "Hotel-Inform(Area=north",
          "Hotel-Inform() and so on")  # fmt: skip


@pytest.mark.parametrize("text", OTHERS)
def test_other_texts_are_none(text):
    assert read_acts(text) is None


def test_values_may_go_without_quotes():
    said = (DialogueAct("Inform", "Hotel", "Area", "north"),)
    assert read_acts(" Hotel-Inform( Area = north ) ") == said
