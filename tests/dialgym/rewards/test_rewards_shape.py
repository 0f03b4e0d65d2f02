"""Length, variety and repetitions, against slow versions."""

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialgym.rewards import Reply, make_reward
from dialgym.rewards.shape import Distinct, Length, Repetition
from dialgym.rewards.words import ngrams, sentences, words
from tests.support.reward_pairs import generated

PAIRS = generated(random.Random(3), 150)
TEXTS = st.text("ab .'-1É_", max_size=15)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("Don't stop, it's 5 o'clock!", ["don't", "stop", "it's", "5", "o'clock"]),
        ("well-known ... 'quoted' rock'n'roll", ["well", "known", "quoted", "rock'n'roll"]),
        ("Ça va? naïve_café", ["ça", "va", "naïve", "café"]),
        ("?! -- _", []),
    ],
)
def test_words(text, wanted):
    assert words(text) == wanted


def test_sentences_end_at_marks_before_a_space():
    assert sentences("No! Really?  3.5 is it. So") == ["No!", "Really?", "3.5 is it.", "So"]
    assert sentences("") == []


@given(tokens=st.lists(st.sampled_from("abc"), max_size=8), n=st.integers(1, 4))
def test_ngrams_are_all_windows(tokens, n):
    wanted = [tuple(tokens[i : i + n]) for i in range(len(tokens)) if i + n <= len(tokens)]
    assert ngrams(tokens, n) == wanted


@pytest.mark.parametrize("n", [1, 2, 3])
def test_distinct_counts_each_ngram_once(n):
    def slow(text):
        seen, total = [], 0
        for i in range(len(words(text)) - n + 1):
            total += 1
            gram = words(text)[i : i + n]
            seen += [] if gram in seen else [gram]
        return len(seen) / total if total else 0.0

    found = Distinct(n=n).score(PAIRS)
    np.testing.assert_allclose(found, [slow(reply.text) for reply in PAIRS], atol=1e-12)
    assert 0 == found.min() < np.median(found) <= found.max() == 1


@pytest.mark.parametrize("context", [False, True])
@pytest.mark.parametrize("n", [1, 3])
def test_repetition_counts_what_was_said_before(n, context):
    def slow(reply):
        before = [w for text in reply.context for w in [windows(text)] if context]
        said, repeated = [gram for grams in before for gram in grams], 0
        for gram in windows(reply.text):
            repeated += gram in said
            said.append(gram)
        return repeated / max(1, len(windows(reply.text)))

    def windows(text):
        return [words(text)[i : i + n] for i in range(len(words(text)) - n + 1)]

    found = Repetition(n=n, context=context).score(PAIRS)
    np.testing.assert_allclose(found, [slow(reply) for reply in PAIRS], atol=1e-12)
    assert found.max() > 0.5


def test_repetition_of_the_context_only_where_asked():
    reply = Reply("see you later then", ("see you later",))
    assert Repetition().score([reply]).item() == 0
    assert Repetition(context=True).score([reply]).item() == 0.5


@pytest.mark.parametrize(
    ("settings", "wanted"),
    [
        ({"target": 3, "margin": 2}, [0, 0, 0.5, 1, 0.5, 0]),
        ({"low": 2, "high": 3, "margin": 4}, [0.5, 0.75, 1, 1, 0.75, 0.5]),
        ({"low": 2, "high": 4, "margin": 0}, [0, 0, 1, 1, 1, 0]),
        ({"low": 0, "high": float("inf")}, [1] * 6),
    ],
)
def test_length_falls_off_on_either_side(settings, wanted):
    replies = [Reply(" ".join(["word,"] * n)) for n in range(6)]
    assert Length(**settings).score(replies).tolist() == wanted


@given(texts=st.lists(TEXTS, max_size=5))
def test_scores_lie_within_bounds(texts):
    replies = [Reply(text, (text[::-1],)) for text in texts]
    for name in ("length", "distinct1", "distinct2", "repetition"):
        reward = make_reward(name)
        found = reward.score(replies)
        assert found.shape == (len(texts),)
        assert ((found >= reward.bounds[0]) & (found <= reward.bounds[1])).all()
