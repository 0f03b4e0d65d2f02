"""Speed as ratios within one run: they hold on any machine, however busy it is.

The gates are a third to a half of what was measured (docs/performance.md); a change that makes
something an order slower falls through them, noise does not.
"""

import pytest

from benchmarks import doors
from benchmarks.environments.dialogues import batched_dialogues
from benchmarks.environments.multiwoz import queries
from benchmarks.environments.replies import batched_replies
from benchmarks.environments.timing import rate
from benchmarks.environments.workloads import (
    batched_tokens,
    batched_turns,
    cartpole,
    single_tokens,
    single_turns,
)
from dialgym.tasks.multiwoz.data import load_world
from tests.support.by_day import by_day


def measure(work):
    return rate(work, repeats=3, seconds=0.1)


@pytest.fixture(scope="module")
def rates():
    return {
        "cartpole": measure(cartpole()),
        "tokens": measure(single_tokens({})),
        "turns": measure(single_turns({})),
        "batched tokens": measure(batched_tokens({})),
        "masked tokens": measure(batched_tokens({}, masks=True)),
        "batched turns": measure(batched_turns({})),
    }


@pytest.mark.parametrize(
    ("what", "reference", "least"),
    [
        ("tokens", "cartpole", 0.8),
        ("batched tokens", "tokens", 1.5),
        ("masked tokens", "tokens", 1.5),
        ("batched turns", "turns", 1.2),
    ],
)
def test_ratio(rates, what, reference, least):
    assert rates[what] / rates[reference] >= least


def reaches(least, work, reference):
    """Tell if `work` does so many times what `reference` does in one of three rounds.

    Other work on the machine can spoil a round; what has become slow fails all of them.
    """
    return any(measure(work) / measure(reference) >= least for _ in range(3))


def test_turns_of_utterances_keep_up_with_cartpole():
    """Texts, their infos and transcripts included; 0.8 to 0.9 where it was measured."""
    assert reaches(0.75, single_turns({}), cartpole())


@pytest.mark.slow
def test_beliefs_in_arrays_are_no_slower_than_row_by_row():
    name = "SFRestaurants-Env6"
    assert reaches(0.8, batched_dialogues(name), batched_dialogues(name, False))


@pytest.mark.slow
def test_scoring_all_replies_at_once_beats_one_by_one():
    assert reaches(1.1, batched_replies({}), batched_replies({}, loop=True))


def test_indexed_queries_beat_a_scan_of_the_rows():
    city = load_world("built-in")
    assert reaches(60, queries(city), queries(city, scan=True))


def test_the_vectorised_rules_beat_the_loop(monkeypatch):
    fast = batched_tokens({})
    monkeypatch.setattr("dialgym.tasks.wordle.Wordle.batch", lambda *args: None)
    assert reaches(1.5, fast, batched_tokens({}))


@pytest.mark.parametrize("family", by_day(["Wordle-20", "SlotFilling"], "SlotFilling"))
def test_a_chat_costs_at_most_twice_as_much_as_the_utterance_view(family):
    found = [doors.chat_figures(family, 8) for _ in range(3)]
    assert min(each["view"] / each["chat"] for each in found) <= doors.MOST_OF_CHAT
