"""Text from elsewhere in a small character set."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialgym.language.text import CHARSET, plain


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Café’s “ok”…\n\tyes", 'Cafe\'s "ok"... yes'),
        ("  a – b — c  ", "a - b - c"),
        ("20° and ½", "20 degrees and 1/2"),
        ("你好", ""),
        ("Łódź, Ærø, Straße, Đorđe, Þór, ırmak", "Lodz, AEro, Strasse, Dorde, Thor, irmak"),
        ("tab\x7fdelete", "tab delete"),
    ],
)
def test_plain(text: str, expected: str) -> None:
    assert plain(text) == expected


@given(st.text())
def test_plain_text_is_in_the_charset_and_stays_as_it_is(text: str) -> None:
    result = plain(text)
    assert set(result) <= set(CHARSET)
    assert plain(result) == result
