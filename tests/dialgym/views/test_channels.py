"""Numbered messages between processes: long and short ones, sent again, and after the end."""

import pytest

from dialgym.views.channels import INLINE, connect


@pytest.fixture
def ends():
    ends = connect()
    yield ends
    for end in ends:
        end.close()


@pytest.mark.parametrize("length", [0, 1, INLINE, INLINE + 1, 3_000_000])
def test_messages_of_any_length_arrive(ends, length):
    first, second = ends
    message = bytes(i % 251 for i in range(length))
    first.send(1, message)
    assert second.receive() == (1, message)
    second.send(7, message[::-1])
    assert first.receive() == (7, message[::-1])


def test_a_message_that_is_sent_again_is_known_by_its_number(ends):
    first, second = ends
    long = b"x" * (INLINE + 1)
    first.send(1, long)
    first.send(1, long)
    assert second.receive(1) == (1, long)
    assert second.receive(2) == (1, b"")
    first.send(2, b"next")
    assert second.receive(2) == (2, b"next")


def test_a_closed_end_is_an_error_at_the_other(ends):
    first, second = ends
    first.send(1, b"last")
    first.close()
    first.close()
    assert second.receive() == (1, b"last")
    with pytest.raises(EOFError):
        second.receive()
    with pytest.raises(BrokenPipeError):
        second.send(1, b"nobody")
