"""Transcripts as messages of chat models."""

from hypothesis import given
from hypothesis import strategies as st

from dialgym.language import Utterance
from dialgym.language.messages import OPENER, WAITING, heard_text, opening, role_of, to_messages
from dialgym.language.text import as_typed

LINES = st.lists(
    st.tuples(st.sampled_from(["system", "user"]), st.text("ab ", max_size=3)).map(
        lambda pair: Utterance(*pair)
    ),
    max_size=6,
)


@given(LINES, st.sampled_from(["system", "user"]))
def test_openings_alternate_and_end_with_a_user_who_says_something(lines, party):
    first, *turns = opening("Play.", lines, party)
    assert first == {"role": "system", "content": "Play."}
    assert [turn["role"] for turn in turns] == ["user", "assistant"] * (len(turns) // 2) + ["user"]
    assert all(turn["content"].strip() for turn in turns if turn["role"] == "user")


@given(LINES, st.sampled_from(["system", "user"]))
def test_all_that_was_said_is_in_the_messages(lines, party):
    messages = to_messages(lines, party)
    joined = [line for message in messages for line in message["content"].split("\n")]
    assert joined == [line.text for line in lines]
    assert [m["role"] for m in messages if m["role"] == "assistant"] == ["assistant"] * len(
        [1 for before, line in zip([None, *lines], lines)
         if line.speaker == party and (before is None or before.speaker != party)]
    )  # fmt: skip


def test_where_nobody_has_spoken_there_is_an_opener():
    assert [m["content"] for m in opening("Play.", [], "system")] == ["Play.", OPENER]
    own = [Utterance("system", "hello()")]
    assert [m["content"] for m in opening("Play.", own, "system")] == [
        "Play.", OPENER, "hello()", WAITING,
    ]  # fmt: skip


def test_rules_that_answer_in_the_partys_own_name_are_told_as_a_transcript():
    lines = [Utterance("system", "quiet"), Utterance("user", "b y b b b")]
    assert heard_text(lines, "user") == "system: quiet\nuser: b y b b b"
    assert heard_text(lines[1:], "system") == "b y b b b"
    assert heard_text([], "system") == ""
    assert role_of("user", "user") == "assistant"


def test_texts_as_they_are_typed():
    assert as_typed(" CRANE\n", "abc ") == "crane"
    assert as_typed(" Is it?", "abcABC ?") == "Is it?"
