"""The error channel: its rate, its lists and its confusions."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dialgym.language.acts import Act, parse_act
from dialgym.simulators.speech_errors import neighbours
from dialgym.tasks.slot_filling.error_channel import (
    ACTS,
    SET1,
    SET3,
    STATISTICS,
    LevenshteinConfusions,
    ListChannel,
    RandomConfusions,
    SingleChannel,
    Statistics,
)
from tests.support.slot_domains import REQUESTABLE, VALUES
from tests.support.slot_talk import DATABASE

SAID = parse_act('reqalts(food="thai")')
"""An act that is never taken for null(), so that the rest of a list can be told from the list."""
ONTOLOGY = DATABASE.ontology
N = 3000


def lists(rate, statistics, fidelity="correct", said=SAID, n=N):
    channel, rng = ListChannel(ONTOLOGY, rate, statistics, fidelity), np.random.default_rng(0)
    return [channel.hear(said, rng) for _ in range(n)]


def place(heard, said=SAID):
    """The place of the truth in a list; None where it is missing."""
    return next((i for i, (act, _) in enumerate(heard) if act.same(said)), None)


def close(counts, expected, n):
    """Return True if observed counts are within 4 standard errors of n times the chances."""
    chances = np.array(expected) / sum(expected)
    observed = np.array([counts.get(i, 0) for i in range(len(chances))]) / n
    return (np.abs(observed - chances) <= 4 * np.sqrt(chances * (1 - chances) / n) + 1e-9).all()


PUBLISHED = {
    "set1": """
        .264 .215 .138 .099 .080        | .300 .068 .085 .072 .079 | .000 .179 .063 .027 .017
        .871 .103 .045 .032 .027 .049   | .029 .010 .002 .001 .000 .001
        .757 .179 .077 .048 .037 .065   | .052 .014 .003 .001 .000 .002""",
    "set3": """
        .147 .430 .212 .147 .048        | .351 .388 .158 .071 .020 | .000 .116 .027 .007 .002
        .905 .101 .017 .008 .005 .010   | .016 .013 .002 .001 .000 .001
        .871 .164 .065 .043 .030 .054   | .029 .020 .005 .002 .001 .003""",
}
"""Lengths of lists right and wrong, places of the truth; scores' means and variances of each."""


# lists


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_tables_are_the_published_ones(name):
    rows = PUBLISHED[name].strip().replace("\n", "|").split("|")
    expected = Statistics(*(tuple(map(float, row.split())) for row in rows))
    assert STATISTICS[name] == expected


@pytest.mark.parametrize("rate", [0.0, 0.15, 0.3, 0.5, 1.0])
@pytest.mark.parametrize("statistics", [SET1, SET3])
def test_the_first_hypothesis_is_wrong_as_often_as_the_rate_says(rate, statistics):
    wrong = [place(heard) != 0 for heard in lists(rate, statistics, n=800)]
    assert np.mean(wrong) == pytest.approx(rate, abs=4 * np.sqrt(rate * (1 - rate) / 800))


@pytest.mark.parametrize("statistics", [SET1, SET3])
def test_lists_are_as_long_as_the_tables_say(statistics):
    for rate, lengths in ((0.0, statistics.right_lengths), (1.0, statistics.wrong_lengths)):
        heard = lists(rate, statistics)
        counts = Counter(len(one) - 2 for one in heard)
        assert close(counts, lengths, N)
        assert max(len(one) for one in heard) == 6


@pytest.mark.parametrize("statistics", [SET1, SET3])
def test_the_truth_is_where_the_tables_say_and_mostly_absent(statistics):
    """In lists of five; the original never leaves it out of those."""
    for fidelity in ("correct", "pydial"):
        places = [p for one in lists(1.0, statistics, fidelity) for p in [place(one)]
                  if len(one) == 6]  # fmt: skip
        counts = Counter(4 if p is None else p - 1 for p in places)
        absent = 1 - sum(statistics.truth)
        table = [*statistics.truth[1:], absent if fidelity == "correct" else 0]
        assert close(counts, table, len(places))


@pytest.mark.parametrize("statistics", [SET1, SET3])
@pytest.mark.parametrize("rate", [0.0, 1.0])
def test_scores_have_the_means_of_the_tables(statistics, rate):
    """Of lists of one, where the rest is all that follows; before they are normalised."""
    means = statistics.wrong_means if rate else statistics.right_means
    variances = statistics.wrong_variances if rate else statistics.right_variances
    rng = np.random.default_rng(1)
    drawn = rng.normal(means, np.sqrt(variances), (100_000, 6)).clip(0.01, 0.99)
    expected = (drawn / drawn.sum(1, keepdims=True))[:, 0].mean()
    found = [one[0][1] for one in lists(rate, statistics)]
    assert np.mean(found) == pytest.approx(expected, abs=0.01)


def test_the_original_scores_a_list_without_the_truth_as_a_right_one():
    tops = {}
    for fidelity in ("correct", "pydial"):
        heard = lists(1.0, SET1, fidelity)
        tops[fidelity] = np.mean([one[0][1] for one in heard if place(one) is None])
    right = np.mean([one[0][1] for one in lists(0.0, SET1)])
    assert tops["pydial"] == pytest.approx(right, abs=0.015)
    assert tops["correct"] < right - 0.05


TEXTS = ['inform(food="thai")', "bye()", "request(phone)", 'inform(="dontcare")', "null()", "ack()",
         'inform(type="restaurant",food="greek")', 'deny(food="thai",food="greek")', "reqalts()",
         'request(name="venue 1",phone)', 'inform(parking="1")', "negate()"]  # fmt: skip


@given(st.sampled_from(TEXTS), st.sampled_from([*STATISTICS]), st.floats(0, 1), st.integers(0, 999))
@settings(max_examples=150)
def test_lists_are_distributions_over_different_acts(text, name, rate, seed):
    said = parse_act(text)
    channel = ListChannel(ONTOLOGY, rate, STATISTICS[name])
    heard = channel.hear(said, np.random.default_rng(seed))
    acts = [act for act, _ in heard]
    assert sum(p for _, p in heard) == pytest.approx(1)
    assert all(p > 0 for _, p in heard)
    assert 1 <= len(heard) <= 6
    assert not any(a.same(b) for i, a in enumerate(acts) for b in acts[:i])
    assert Act("null") in acts
    assert said.type == "bye" or Act("bye") not in acts


# single hypotheses


@pytest.mark.parametrize("rate", [0.0, 0.2, 1.0])
def test_a_single_hypothesis_is_wrong_as_often_as_the_rate_says(rate):
    channel, rng = SingleChannel(ONTOLOGY, rate), np.random.default_rng(0)
    heard = [channel.hear(SAID, rng) for _ in range(2000)]
    assert all(len(one) == 1 and one[0][1] == 1 for one in heard)
    wrong = np.mean([place(one) is None for one in heard])
    assert wrong == pytest.approx(rate, abs=4 * np.sqrt(rate * (1 - rate) / 2000))


@pytest.mark.parametrize("rate", [-0.1, 1.1, "much", True, None])
def test_the_rate_is_checked(rate):
    with pytest.raises(ValueError, match=r"error_rate .* number from 0 to 1; got .* 15 % is"):
        ListChannel(ONTOLOGY, rate, SET1)


# confusions


@pytest.mark.parametrize("kind", [RandomConfusions, LevenshteinConfusions])
def test_types_slots_and_values_are_confused_as_often_as_published(kind):
    confusions, rng = kind(ONTOLOGY), np.random.default_rng(0)
    counts = Counter()
    for _ in range(N):
        other = confusions.confuse(SAID, rng)
        assert other is not None
        changed = other.type != SAID.type, [i.slot for i in other.items] != ["food"]
        counts[0 if changed[0] else 1 if changed[1] else 2] += 1
    assert close(counts, [0.2, 0.3, 0.5], N)


def test_an_act_without_items_is_confused_in_its_type():
    confusions, rng = LevenshteinConfusions(ONTOLOGY), np.random.default_rng(0)
    for text in ("ack()", 'inform(="dontcare")'):
        said = parse_act(text)
        assert {confusions.confuse(said, rng).type for _ in range(300)} == set(
            neighbours(ACTS)[said.type][0]
        ) - {"bye"}


def test_a_type_gets_as_many_arguments_as_it_has():
    confusions, rng = RandomConfusions(ONTOLOGY), np.random.default_rng(0)
    for _ in range(1000):
        other = confusions.confuse(Act("ack"), rng)
        if other.type == "request":
            assert [item.value for item in other.items] == [None]
        elif other.type in ("inform", "reqalts", "confirm", "affirm", "negate"):
            (item,) = other.items
            known = item.slot in ONTOLOGY.informable
            values = (*ONTOLOGY.informable[item.slot], "dontcare") if known else (None,)
            assert item.value in values
        else:
            assert other.items == ()


def test_a_slot_is_never_taken_for_the_name_by_sound():
    confusions, rng = LevenshteinConfusions(ONTOLOGY), np.random.default_rng(0)
    others = [confusions._with_other_slots(SAID, rng).items[0].slot for _ in range(500)]
    assert set(others) == set(REQUESTABLE) - {"name", "food"}


def test_the_type_of_a_row_is_not_confused():
    said = parse_act('inform(type="restaurant",food="thai")')
    confusions, rng = LevenshteinConfusions(ONTOLOGY), np.random.default_rng(0)
    for _ in range(300):
        other = confusions.confuse(said, rng)
        if other.type == "inform" and len(other.items) == 2:
            assert other.items[0] == said.items[0]
            assert other.items[1].slot == "food"


def test_values_are_confused_within_their_slot():
    confusions, rng = LevenshteinConfusions(ONTOLOGY), np.random.default_rng(0)
    others = {confusions._with_other_value(SAID, rng).items[0].value for _ in range(300)}
    assert others == {*VALUES["food"], "dontcare"} - {"thai"}
