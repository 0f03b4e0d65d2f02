"""Colours against a slow oracle, and the table."""

import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialgym.tasks.wordle.patterns import REPLIES, SOLVED, colour, letters, pattern_table

WORD = st.text("abcde", min_size=5, max_size=5)


def slow(guess, secret):
    """Wordle's rule, letter by letter: greens first, then yellows while the secret has some."""
    left = list(secret)
    answer = ["b"] * 5
    for i, letter in enumerate(guess):
        if letter == secret[i]:
            answer[i] = "g"
            left.remove(letter)
    for i, letter in enumerate(guess):
        if answer[i] == "b" and letter in left:
            answer[i] = "y"
            left.remove(letter)
    return " ".join(answer)


def slow_ilql(guess, secret):
    """ILQL's rule: repeated letters are not counted."""
    return " ".join("g" if a == b else "y" if a in secret else "b" for a, b in zip(guess, secret))


def fast(guess, secret, rule="standard"):
    return str(REPLIES[colour(letters([guess]), letters([secret]), rule)[0]])


@given(WORD, WORD)
def test_feedback_is_that_of_the_oracle(guess, secret):
    assert fast(guess, secret) == slow(guess, secret)
    assert fast(guess, secret, "ilql") == slow_ilql(guess, secret)
    assert (fast(guess, secret) == REPLIES[SOLVED]) == (guess == secret)


@pytest.mark.parametrize(
    ("guess", "secret", "standard", "ilql"),
    [
        ("speed", "abide", "b b y b y", "b b y y y"),
        ("daddy", "abide", "b y b g b", "y y y g b"),
        ("crane", "crane", "g g g g g", "g g g g g"),
        ("llama", "label", "g y y b b", "g y y b y"),
    ],
)
def test_known_cases(guess, secret, standard, ilql):
    assert fast(guess, secret) == standard
    assert fast(guess, secret, "ilql") == ilql


@given(st.lists(WORD, min_size=1, max_size=9), st.lists(WORD, min_size=1, max_size=9))
def test_broadcast_equals_pairs(guesses, secrets):
    table = colour(letters(guesses)[:, None], letters(secrets)[None], "standard")
    assert table.tolist() == [
        [colour(letters([g]), letters([s]), "standard")[0] for s in secrets] for g in guesses
    ]


def test_table_is_kept_and_read_only(tmp_path, monkeypatch):
    monkeypatch.setenv("DIALGYM_CACHE", str(tmp_path))
    first = pattern_table(["crane", "slate"], ["abide"], "standard")
    (file,) = tmp_path.glob("*.npy")
    stamp = file.stat().st_mtime_ns
    again = pattern_table(["crane", "slate"], ["abide"], "standard")
    assert (first == again).all()
    assert file.stat().st_mtime_ns == stamp
    for table in (first, again):
        assert not table.flags.writeable


def test_a_damaged_or_unwritable_cache_is_no_error(tmp_path, monkeypatch):
    monkeypatch.setenv("DIALGYM_CACHE", str(tmp_path))
    expected = pattern_table(["crane"], ["abide"], "standard")
    (file,) = tmp_path.glob("*.npy")
    file.write_bytes(b"not an array")
    assert (pattern_table(["crane"], ["abide"], "standard") == expected).all()
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("DIALGYM_CACHE", os.fspath(blocked))
    assert (pattern_table(["crane"], ["abide"], "standard") == expected).all()


def test_table_of_the_well_known_list(data):
    guesses = (data / "wordle" / "wordle_official_guess.txt").read_text().split()
    answers = (data / "wordle" / "wordle_official.txt").read_text().split()
    assert (len(guesses), len(answers)) == (12972, 2315)
    guesses = guesses[::8]
    table = pattern_table(guesses, answers, "standard")
    assert table.shape == (len(guesses), 2315)
    rng = np.random.default_rng(0)
    for g, a in zip(rng.integers(0, len(guesses), 2000), rng.integers(0, 2315, 2000)):
        assert REPLIES[table[g, a]] == slow(guesses[g], answers[a])
